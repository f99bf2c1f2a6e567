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
  createGroup,
  groupsBelow,
  killMembers,
  readCount,
  removeGroup,
  writeSetting,
} from './group-directory.ts';

export type ControllerV1 = 'memory' | 'cpu' | 'pids' | 'cpuacct';

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
      for (const group of groups(id)) await createGroup(group);
      for (const [controller, name, value] of settings(limits)) {
        const group = at(controller, id);
        if (group !== undefined) await writeSetting(group, name, value);
      }
    },
    entryFiles: (id) => groups(id).map((group) => join(group, 'cgroup.procs')),
    usage: (id) => readUsage((controller) => at(controller, id)),
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

function settings(limits: CgroupLimits): readonly (readonly [ControllerV1, string, number])[] {
  const { memBytes, cpuMillicores, pids } = limits;
  return [
    ...(memBytes === undefined ? [] : ([['memory', 'memory.limit_in_bytes', memBytes]] as const)),
    ...(cpuMillicores === undefined
      ? []
      : ([
          ['cpu', 'cpu.cfs_period_us', CPU_PERIOD_US],
          ['cpu', 'cpu.cfs_quota_us', cpuQuotaUs(cpuMillicores)],
        ] as const)),
    ...(pids === undefined ? [] : ([['pids', 'pids.max', pids]] as const)),
  ];
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
