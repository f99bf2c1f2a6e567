// Workloads without namespaces: as host users of their own (`user`), or as the user of this process (`none`).
import { setTimeout as delay } from 'node:timers/promises';
import type { Cgroups } from '../../box-host/cgroup/cgroups.ts';
import { CLOSE_DESCRIPTORS } from '../../box-host/bubblewrap/namespaces/entering.ts';
import { joinedCommand } from '../../box-host/cgroup/joined-command.ts';
import { limitOptions } from '../../box-host/cgroup/resource-limits.ts';
import { runCommand } from '../../box-host/command.ts';
import { findTree, readProcessTable } from '../limits/process-table.ts';
import { BEGIN_SCRIPT } from '../program/begin-script.ts';
import { userOptions } from '../users/user-processes.ts';
import type { WorkloadUser } from '../workload.ts';
import { openHostNetwork } from './host-network.ts';
import type { Containment, Isolation, Launch, LaunchPlan } from './isolation.ts';
import { type Kept, Keeper } from './keeper.ts';

const FIRST_DESCRIPTOR = 5;
/** Not only its files: queues and segments of System V and POSIX as well. */
const UNSHARE: readonly string[] = ['unshare', '--mount', '--ipc', '--propagation', 'private', '--'];
/** A host user may have several workloads of its owner: each is limited, and together they are as well. */
const WORKLOADS_OF_USER = 16;
const END_MS = 10_000;
const RETRY_MS = 10;

/** Where every user of a machine may write, each with what a workload finds there instead; undefined: memory. */
const SHARED_PLACES: readonly (readonly [place: string, own: 'temporary' | 'longTemporary' | undefined])[] = [
  ['/tmp', 'temporary'],
  ['/var/tmp', 'longTemporary'],
  ['/dev/shm', undefined],
  ['/run/lock', undefined],
];

// As root, in a mount namespace of its own. `$1`: the number of pairs, which follow: a place, and a directory or nothing.
const COVER = `
set -e
count=$1
shift
for ((index = 0; index < count; index++)); do
  if [ ! -d "$1" ]; then :
  elif [ -n "$2" ]; then mount -n --bind -- "$2" "$1"
  else mount -n -t tmpfs -o size=64m,nr_inodes=16k,mode=1777,nosuid,nodev tmpfs "$1"; fi
  shift 2
done
set +e
`;

export async function openHostProcesses(kind: 'user' | 'none', cgroups: Cgroups): Promise<Isolation> {
  const keeper = await Keeper.start();
  const canCover = kind === 'user' && (await runCommand([...UNSHARE, '/bin/true'])).code === 0;
  return {
    kind,
    pathsOf: ({ temporary, bundle }) => ({ temporary, bundle }),
    openNetwork: async () => openHostNetwork(),
    launch: (plan) => launch(plan, canCover),
    contain: (plan, pid) => contain(plan, { pid, keeper, cgroups }),
    close: () => keeper.close(),
  };
}

function launch(plan: LaunchPlan, canCover: boolean): Launch {
  const { cgroupFiles, user, limits, command } = plan;
  const { processes, ...others } = limits;
  // The kernel counts the processes of the user: without one of its own, those of everybody.
  const ofUser = user && processes && { processes: processes * WORKLOADS_OF_USER };
  const shell = ['/bin/sh', '-c', BEGIN_SCRIPT, 'sh', ...command];
  const limited = ['prlimit', ...limitOptions({ ...others, ...ofUser }), '--', ...withRights(user), ...shell];
  const closed = (script: string, ...args: readonly string[]): readonly string[] => [
    ...['bash', '-c', `${CLOSE_DESCRIPTORS}${script}exec "$@"`, 'bash', String(FIRST_DESCRIPTOR)],
    ...[...args, ...limited],
  ];
  const places = coveredPlaces(plan);
  const own = canCover ? [...UNSHARE, ...closed(COVER, String(places.length), ...places.flat())] : closed('');
  return { command: joinedCommand(cgroupFiles, own), descriptors: [], close: () => undefined };
}

/** Without those in which the workload has something already. */
function coveredPlaces({ files, mounts, command }: LaunchPlan): readonly (readonly [string, string])[] {
  const used = [files.directory, ...mounts.map(({ source }) => source), ...command.slice(0, 1)];
  const isUsed = (place: string): boolean => used.some((path) => path.startsWith(`${place}/`));
  const covered = SHARED_PLACES.filter(([place]) => !isUsed(place));
  return covered.map(([place, own]) => [place, own === undefined ? '' : files[own]]);
}

/** The signal of the parent's end is set last: a change of the user resets it. */
function withRights(user: WorkloadUser | undefined): readonly string[] {
  const ids = user === undefined ? [] : userOptions(user);
  return ['setpriv', ...ids, '--no-new-privs', '--pdeathsig', 'KILL', '--'];
}

type Contained = { readonly pid: number; readonly keeper: Keeper; readonly cgroups: Cgroups };

function contain({ id, user }: LaunchPlan, { pid, keeper, cgroups }: Contained): Containment {
  const kept: Kept = user === undefined ? { kind: 'session', id: pid } : { kind: 'user', id: user.uid };
  keeper.add(kept);
  // What was seen once is known when it has another parent and session.
  const seen = new Map<number, number>();
  const find = (table = readProcessTable()): readonly number[] => {
    const found = new Set(findTree(table, pid));
    for (const [one, startedTicks] of seen)
      if (table.get(one)?.startedTicks === startedTicks)
        for (const below of findTree(table, one)) found.add(below);
    for (const one of found) seen.set(one, table.get(one)?.startedTicks ?? 0);
    for (const one of seen.keys()) if (!table.has(one)) seen.delete(one);
    return [...found];
  };
  const kill = (): void => find().forEach((one) => sendSignal(one, 'SIGKILL'));
  return {
    exitOf: (exit) => exit,
    signal: (signal) => sendSignal(pid, signal),
    kill,
    async empty() {
      if (cgroups.version !== 'none') await cgroups.empty(id);
      await endAll(find, kill);
      keeper.remove(kept);
    },
    processes: find,
  };
}

async function endAll(find: () => readonly number[], kill: () => void): Promise<void> {
  const deadlineMs = performance.now() + END_MS;
  for (; find().length > 0; await delay(RETRY_MS)) {
    if (performance.now() > deadlineMs) throw new Error('a process of the workload does not end');
    kill();
  }
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended.
  }
}
