// The workloads of one process: opens what isolates, limits and connects them, and leaves nothing behind.
import { createHash } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../base/log.ts';
import type { UserRange } from '../box-host/bubblewrap/host-users.ts';
import type { Cgroups } from '../box-host/cgroup/cgroups.ts';
import { detectCgroups } from '../box-host/cgroup/detect-cgroups.ts';
import { lockDirectory, prepareDirectory } from '../box-host/directory-lock.ts';
import type { SidecarProgram } from '../box-host/sidecars/sidecar-process.ts';
import type { Isolation } from './isolation/isolation.ts';
import { chooseIsolation, explainFailure } from './isolation/isolation-choice.ts';
import { type LeftoversOptions, removeLeftovers } from './leftovers.ts';
import { describeIsolation, describeLimits } from './limits/held-limits.ts';
import { WorkloadProxies } from './network/workload-proxies.ts';
import { removeTree } from './tree-removal.ts';
import { clearUser } from './users/user-leftovers.ts';
import { endProcesses } from './users/user-processes.ts';
import { toUser, WorkloadUsers } from './users/workload-users.ts';
import type { WorkloadIsolation, Workloads } from './workload.ts';
import { WorkloadRecords } from './workload-records.ts';
import { WorkloadStarter } from './workload-starter.ts';

export type WorkloadsOptions = {
  /** Of nobody else. With the isolation `user`, every user of the machine must be able to enter what is above. */
  readonly directory: string;
  readonly isolation: WorkloadIsolation | 'auto';
  /** Others than this machine reach the platform: then nothing runs without isolation. */
  readonly isExposed: boolean;
  readonly sidecar: SidecarProgram;
  readonly log: Log;
  readonly users?: UserRange | undefined;
  /** See `HostUsersOptions`. */
  readonly userRegistry?: string | undefined;
  /** What limits them; by default what the machine has. */
  readonly detectLimits?: (name: string) => Promise<Cgroups>;
};

/** Rejects with an InputError that says what to do when the isolation cannot be had, or the directory not be used. */
export async function openWorkloads(options: WorkloadsOptions): Promise<Workloads> {
  await using opening = new AsyncDisposableStack();
  const places = await preparePlaces(options);
  opening.use(await lockDirectory(places.own, 'runner'));
  const cgroups = await (options.detectLimits ?? detectCgroups)(groupName(places.own));
  await cgroups.sweep();
  opening.defer(() => cgroups.close());
  const isolation = await chooseIsolation({
    ...{ wanted: options.isolation, isExposed: options.isExposed, cgroups },
    ...{ directory: options.directory, privateDirectory: places.own },
  });
  opening.defer(() => isolation.close());
  const records = await WorkloadRecords.open(join(places.own, 'records'));
  const users = await openUsers(options, isolation.kind, places.own, records);
  opening.defer(() => users?.close());
  const proxies = await WorkloadProxies.open({
    directory: places.own,
    program: options.sidecar,
    log: options.log,
  });
  opening.defer(() => proxies.close());
  const shared = { cgroups, records, directory: places.workloads, log: options.log };
  const starter = new WorkloadStarter({ ...shared, isolation, users, proxies });
  const cleanup = (): Promise<void> =>
    removeLeftovers({ ...shared, isCurrent: (id) => starter.isCurrent(id), releaseUser: releaserOf(users) });
  await cleanup();
  if (isolation.kind === 'bubblewrap') await tryOut(starter);
  const opened = opening.move();
  return {
    isolation: isolation.kind,
    hasOwnFiles: isolation.kind === 'bubblewrap',
    hasOwnNetwork: isolation.kind === 'bubblewrap',
    capabilities: () => capabilitiesOf(isolation, cgroups),
    userOf: async (owner) => users?.userOf(owner),
    get owners() {
      return users?.owners ?? new Set();
    },
    releaseUser: async (owner) => users?.releaseOwner(owner),
    start: (spec) => starter.start(spec),
    cleanup,
    async close() {
      await starter.close();
      await opened.disposeAsync();
    },
  };
}

type Places = {
  /** Private to the user of this process. */
  readonly own: string;
  /** Of the directories of workloads. */
  readonly workloads: string;
};

async function preparePlaces({ directory, isolation }: WorkloadsOptions): Promise<Places> {
  const places = { own: join(directory, 'private'), workloads: join(directory, 'w') };
  const mode = isolation === 'user' ? 0o711 : 0o700;
  for (const path of [directory, places.workloads]) {
    await mkdir(path, { recursive: true, mode });
    await chmod(path, mode);
  }
  await prepareDirectory(places.own);
  await removeTree(join(places.own, 'system'));
  return places;
}

/** Undefined: without root there is one user, and without isolation nobody needs another one. */
async function openUsers(
  { users: range, userRegistry: registry }: WorkloadsOptions,
  kind: WorkloadIsolation,
  directory: string,
  records: WorkloadRecords,
): Promise<WorkloadUsers | undefined> {
  if (process.getuid?.() !== 0 || kind === 'none') return undefined;
  const taken = [...(await records.list()).values()].flatMap((record) => record?.uid ?? []);
  // In a namespace of its own nothing is left of a user.
  const isShared = kind === 'user';
  return WorkloadUsers.open({
    ...{ directory, range, registry, taken },
    end: async (user) => (isShared ? endProcesses(user) : undefined),
    clear: async (user) => (isShared ? clearUser(user) : endProcesses(user)),
  });
}

function releaserOf(users: WorkloadUsers | undefined): LeftoversOptions['releaseUser'] {
  return async (uid) => users?.releaseLeft(toUser(uid));
}

/** A machine that cannot isolate is found out before anything of a tenant is started. */
async function tryOut(starter: WorkloadStarter): Promise<void> {
  const spec = {
    command: ['/usr/bin/true'],
    cwd: '/',
    env: {},
    mounts: [],
    limits: {},
    network: 'none',
  } as const;
  try {
    const workload = await starter.start({ id: 'trial', ...spec, onLine: () => undefined });
    const { code } = await workload.ended;
    if (code !== 0) throw new Error(`a trial ended with ${code}`);
  } catch (error) {
    throw await explainFailure(error);
  }
}

function capabilitiesOf(isolation: Isolation, { missing }: Cgroups) {
  const all = { memBytes: 1, cpuMillicores: 1, pids: 1, diskBytes: 1 };
  const limits = describeLimits(all, missing).map(({ note, reason }) =>
    reason === undefined ? note : `${note}: ${reason}`,
  );
  const notes = [...describeIsolation(isolation.kind), ...limits];
  return { isolation: isolation.kind, version: isolation.version, notes };
}

/** The same for the same directory: the groups that a killed process left are found by it. */
function groupName(directory: string): string {
  return `sallyport-workloads-${createHash('sha256').update(directory).digest('hex').slice(0, 12)}`;
}
