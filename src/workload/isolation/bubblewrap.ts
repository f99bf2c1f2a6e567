// Workloads in namespaces of their own, made by bubblewrap. As root each has a host user as well, and its mounts are made in a mount
// namespace that ends with it: nothing of it is ever mounted on the machine.
import { closeSync, openSync, readFileSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { encodeArguments } from '../../box-host/bubblewrap/arguments.ts';
import { proxyPort } from '../../box-host/bubblewrap/environment.ts';
import { caBundlePath } from '../../box-host/bubblewrap/etc-files.ts';
import { HiddenPaths } from '../../box-host/bubblewrap/hidden-paths.ts';
import { childrenOf, killContained } from '../../box-host/bubblewrap/namespaces/contained-processes.ts';
import { enterNamespaces } from '../../box-host/bubblewrap/namespaces/entering.ts';
import { MountNamespace } from '../../box-host/bubblewrap/namespaces/mount-namespace.ts';
import { NetworkNamespace } from '../../box-host/bubblewrap/namespaces/network-namespace.ts';
import { endSurvivors } from '../../box-host/bubblewrap/namespaces/survivors.ts';
import { encodeFilter } from '../../box-host/bubblewrap/seccomp/filter.ts';
import type { Cgroups } from '../../box-host/cgroup/cgroups.ts';
import { joinedCommand } from '../../box-host/cgroup/joined-command.ts';
import { limitOptions } from '../../box-host/cgroup/resource-limits.ts';
import { openNamespaceListener } from '../../box-host/listeners/namespace-listener.ts';
import type { HiddenPath } from '../../box-host/snapshots/base-snapshot.ts';
import { findTree } from '../limits/process-table.ts';
import { BEGIN_SCRIPT } from '../program/begin-script.ts';
import { userOptions } from '../users/user-processes.ts';
import { bubblewrapArguments } from './bubblewrap-arguments.ts';
import type { Containment, Isolation, Launch, LaunchPlan, NetworkPlace, ProgramExit } from './isolation.ts';
import { createSystemFiles, type SystemFiles } from './system-files.ts';

export type BubblewrapOptions = {
  /** Private to this user; `system` in it does not exist. */
  readonly directory: string;
  readonly version: string | undefined;
  readonly cgroups: Cgroups;
};

const SECCOMP = 5;
const ARGUMENTS = 6;
const NAMESPACES = 7;

/** As root, every user must be able to enter it. It stays empty: mounts are made over it where nobody else sees them. */
const MOUNTS = '/run/sallyport-workloads';

// Sources lie where the host user of the workload may not go. `$1`: MOUNTS, `$2`: the number of sources, which follow.
const BIND = `
set -e
base=$1 count=$2
shift 2
mount -n -t tmpfs -o size=1m,mode=0711,nosuid,nodev,noexec tmpfs "$base"
for ((index = 0; index < count; index++)); do
  if [ -d "$1" ]; then mkdir -m 0711 -- "$base/$index"; else : >"$base/$index"; fi
  mount -n --bind -- "$1" "$base/$index"
  shift
done
exec "$@"`;

type Opened = BubblewrapOptions & {
  readonly namespace: MountNamespace;
  readonly system: SystemFiles;
  readonly seccompFile: string;
  /** As last searched for. */
  readonly hidden: readonly HiddenPath[];
};

/** Rejects with an Error that says what this machine lacks. */
export async function openBubblewrap(options: BubblewrapOptions): Promise<Isolation> {
  const { directory, version } = options;
  const filter = encodeFilter(process.arch);
  if (filter === undefined) throw new Error(`there is no seccomp filter for ${process.arch}`);
  const seccompFile = join(directory, 'seccomp.bpf');
  await writeFile(seccompFile, filter, { mode: 0o600 });
  const system = await createSystemFiles(join(directory, 'system'));
  const namespace = await MountNamespace.open();
  const isRoot = namespace.privilege === 'root';
  if (isRoot) await prepareMounts();
  // A user of its own may read nothing of /usr that others may not read.
  const hidden = isRoot ? [] : await new HiddenPaths().current();
  const opened = { ...options, namespace, system, seccompFile, hidden };
  return {
    kind: 'bubblewrap',
    version,
    pathsOf: () => ({ temporary: '/tmp', bundle: caBundlePath }),
    openNetwork: () => openNetwork(namespace),
    launch: (plan) => launch(opened, plan),
    contain: (plan, pid) => contain(opened, plan, pid),
    async close() {
      namespace[Symbol.dispose]();
    },
  };
}

async function prepareMounts(): Promise<void> {
  await mkdir(MOUNTS, { recursive: true, mode: 0o711 });
  await chmod(MOUNTS, 0o711);
}

async function openNetwork(namespace: MountNamespace): Promise<NetworkPlace> {
  const network = await NetworkNamespace.open(namespace);
  const openPort = (port: number) => openNamespaceListener(network, { host: '127.0.0.1', port });
  let opened: { close(): void } | undefined;
  return {
    namespaces: network.namespaces,
    async openListen() {
      const listen = await openPort(proxyPort);
      opened = listen;
      return listen;
    },
    openPort,
    proxyUrl: () => `http://127.0.0.1:${proxyPort}`,
    close() {
      opened?.close();
      network[Symbol.dispose]();
    },
  };
}

function launch(opened: Opened, plan: LaunchPlan): Launch {
  const { files, mounts, user, network, cgroupFiles, limits, command } = plan;
  const sources = [
    opened.system.etc,
    ...[files.bundle, files.temporary, files.longTemporary],
    ...mounts.map(({ source }) => source),
  ];
  const isRoot = opened.namespace.privilege === 'root';
  const [etc = '', bundle = '', temporary = '', longTemporary = '', ...rest] = isRoot
    ? sources.map((_, index) => `${MOUNTS}/${index}`)
    : sources;
  const args = bubblewrapArguments({
    ...{ etc, bundle, temporary, longTemporary },
    links: opened.system.links,
    hidden: opened.hidden,
    mounts: mounts.map(({ target, writable = false }, index) => ({
      ...{ source: rest[index] ?? '', target, isWritable: writable },
    })),
    seccompDescriptor: SECCOMP,
  });
  // Within the user namespace, where the kernel counts the processes of this workload alone.
  const { processes, ...others } = limits;
  const counted = processes === undefined ? [] : ['/usr/bin/prlimit', `--nproc=${processes}`, '--'];
  const shell = [...counted, '/bin/sh', '-c', `exec ${ARGUMENTS}<&-\n${BEGIN_SCRIPT}`, 'sh', ...command];
  const limited = ['prlimit', ...limitOptions(others), '--'];
  const isolated = [...limited, ...toUser(user), 'bwrap', '--args', String(ARGUMENTS), '--', ...shell];
  const bound = isRoot ? inOwnMounts(sources, isolated) : isolated;
  const entry = enterNamespaces(network.namespaces ?? {}, bound, { firstDescriptor: NAMESPACES });
  const filter = openSync(opened.seccompFile, 'r');
  return {
    command: joinedCommand(cgroupFiles, entry.command),
    descriptors: [filter, { text: encodeArguments(args) }, ...entry.descriptors],
    close: () => closeSync(filter),
  };
}

function toUser(user: LaunchPlan['user']): readonly string[] {
  return user === undefined ? [] : ['setpriv', ...userOptions(user), '--'];
}

function inOwnMounts(sources: readonly string[], command: readonly string[]): readonly string[] {
  const unshared = ['unshare', '--mount', '--propagation', 'private', '--'];
  return [...unshared, 'bash', '-c', BIND, 'bash', MOUNTS, String(sources.length), ...sources, ...command];
}

function contain({ cgroups }: Opened, { id, network }: LaunchPlan, pid: number): Containment {
  const namespace = network.namespaces?.net;
  return {
    exitOf,
    signal(signal) {
      const program = findProgram(pid);
      if (program !== undefined) sendSignal(program, signal);
    },
    kill: () => killContained(pid),
    async empty() {
      if (cgroups.version !== 'none') await cgroups.empty(id);
      else if (namespace !== undefined) await endSurvivors(namespace);
    },
    // Orphans have the first process of the pid namespace as their parent: none can leave the tree.
    processes: (table) => findTree(table, pid),
  };
}

/** bwrap ends with 128 and the number of the signal that ended the program. */
function exitOf(exit: ProgramExit): ProgramExit {
  const number = (exit.code ?? 0) - 128;
  const names = Object.keys(constants.signals) as NodeJS.Signals[];
  const signal = names.find((name) => constants.signals[name] === number);
  return signal === undefined ? exit : { code: null, signal };
}

/** Behind bwrap, and the first process of its pid namespace, which the program follows. */
function findProgram(bwrap: number): number | undefined {
  return childrenOf(bwrap)
    .flatMap(childrenOf)
    .find((pid) => /^NSpid:.*\t2$/m.test(readStatus(pid)));
}

function readStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended.
  }
}
