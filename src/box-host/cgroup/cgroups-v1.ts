// Limits by cgroups version 1: each controller is a tree of its own.
import { join } from 'node:path';
import {
  type Cgroups,
  type CgroupLimits,
  type CgroupUsage,
  CPU_PERIOD_US,
  cpuQuotaUs,
  type MissingLimit,
} from './cgroups.ts';
import {
  codeOf,
  createGroup,
  emptyGroup,
  groupsBelow,
  killMembers,
  readCount,
  readEntry,
  removeGroup,
  writeOptional,
  writeSetting,
} from './group-directory.ts';

export type ControllerV1 = 'memory' | 'cpu' | 'pids' | 'cpuacct';

const UNLIMITED = -1;
const PRESSURE_MS = 5_000;

/** `directories`: where our groups lie, for each controller that can be used. */
export function cgroupsV1(
  directories: ReadonlyMap<ControllerV1, string>,
  missing: readonly MissingLimit[],
): Cgroups {
  const at = (controller: ControllerV1, id: string): string | undefined => {
    const directory = directories.get(controller);
    return directory === undefined ? undefined : join(directory, id);
  };
  const groups = (id: string): readonly string[] => [...directories.values()].map((one) => join(one, id));
  const remove = async (id: string): Promise<void> => {
    // One after the other: with the first of them, the processes are dead for all.
    for (const group of groups(id)) await removeGroup(group, () => killMembers(group));
  };
  return {
    version: 'v1',
    missing,
    async create(id, limits) {
      for (const controller of directories.keys()) {
        const group = at(controller, id) ?? '';
        const isNew = await createGroup(group);
        await setLimit(controller, group, isNew, limits);
      }
    },
    entryFiles: (id) => groups(id).map((group) => join(group, 'cgroup.procs')),
    usage: (id) => readUsage((controller) => at(controller, id)),
    async events(id) {
      const read = async (
        controller: ControllerV1,
        name: string,
        key: string,
      ): Promise<number | undefined> => {
        const group = at(controller, id);
        return group === undefined ? undefined : readEntry(group, name, key);
      };
      const oomKills = await read('memory', 'memory.oom_control', 'oom_kill');
      return { oomKills, refusedForks: await read('pids', 'pids.events', 'max') };
    },
    async empty(id) {
      for (const group of groups(id)) await emptyGroup(group, () => killMembers(group));
    },
    remove,
    async sweep() {
      const names = await Promise.all([...directories.values()].map(groupsBelow));
      for (const id of new Set(names.flat())) await remove(id);
    },
    async close() {
      for (const directory of directories.values()) await removeGroup(directory, () => Promise.resolve());
    },
  };
}

/** A limit that is absent is lifted; a new group has none. */
async function setLimit(
  controller: ControllerV1,
  group: string,
  isNew: boolean,
  { memBytes, cpuMillicores, pids }: CgroupLimits,
): Promise<void> {
  if (controller === 'memory' && !(isNew && memBytes === undefined))
    await limitMemory(group, String(memBytes ?? UNLIMITED));
  if (controller === 'cpu' && !(isNew && cpuMillicores === undefined)) {
    await writeSetting(group, 'cpu.cfs_period_us', CPU_PERIOD_US);
    const quota = cpuMillicores === undefined ? UNLIMITED : cpuQuotaUs(cpuMillicores);
    await writeSetting(group, 'cpu.cfs_quota_us', quota);
  }
  if (controller === 'pids' && !(isNew && pids === undefined))
    await writeSetting(group, 'pids.max', pids ?? 'max');
}

async function limitMemory(group: string, bytes: string): Promise<void> {
  // Before the first socket. Without it, what sockets hold counts for nobody and fills what the host has for all of them.
  await writeOptional(group, 'memory.kmem.tcp.limit_in_bytes', bytes);
  // That of memory with swap is never the lower one: a higher limit begins with it, a lower one ends with it.
  const isRaised = await isRejected(writeUnderPressure(group, 'memory.limit_in_bytes', bytes));
  const hasSwapLimit = await writeOptional(group, 'memory.memsw.limit_in_bytes', bytes);
  if (isRaised) await writeUnderPressure(group, 'memory.limit_in_bytes', bytes);
  // Without that limit, nothing of the group is swapped out.
  if (!hasSwapLimit) await writeOptional(group, 'memory.swappiness', '0');
}

async function isRejected(written: Promise<void>): Promise<boolean> {
  try {
    await written;
    return false;
  } catch (error) {
    if (codeOf(error) !== 'EINVAL') throw error;
    return true;
  }
}

/** What has more memory than its new limit is killed, as in version 2. */
async function writeUnderPressure(group: string, name: string, value: string): Promise<void> {
  const deadlineMs = performance.now() + PRESSURE_MS;
  for (;;) {
    try {
      await writeSetting(group, name, value);
      return;
    } catch (error) {
      if (codeOf(error) !== 'EBUSY' || performance.now() > deadlineMs) throw error;
    }
    await emptyGroup(group, () => killMembers(group));
  }
}

async function readUsage(at: (controller: ControllerV1) => string | undefined): Promise<CgroupUsage> {
  const read = async (controller: ControllerV1, name: string): Promise<number | undefined> => {
    const group = at(controller);
    return group === undefined ? undefined : readCount(group, name);
  };
  const [memBytes, cpuNs, pids] = await Promise.all([
    read('memory', 'memory.usage_in_bytes'),
    read('cpuacct', 'cpuacct.usage'),
    read('pids', 'pids.current'),
  ]);
  return { memBytes, cpuMs: cpuNs === undefined ? undefined : Math.round(cpuNs / 1e6), pids };
}
