// Limits by cgroups version 2: one tree, in which our part was delegated to us.
import { join } from 'node:path';
import { type Cgroups, type CgroupLimits, CPU_PERIOD_US, cpuQuotaUs, type MissingLimit } from './cgroups.ts';
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

/** `directory`: where our groups lie, with the controllers enabled for them. */
export function cgroupsV2(directory: string, missing: readonly MissingLimit[]): Cgroups {
  const held = (limit: MissingLimit['limit']): boolean => !missing.some((one) => one.limit === limit);
  const group = (id: string): string => join(directory, id);
  const remove = (id: string): Promise<void> => removeGroup(group(id), () => kill(group(id)));
  return {
    version: 'v2',
    missing,
    async create(id, limits) {
      const isNew = await createGroup(group(id));
      for (const [limit, name, value] of settings(limits)) {
        if (!held(limit) || (isNew && value === undefined)) continue;
        await writeSetting(group(id), name, value ?? 'max');
        // A kernel without swap has no such setting.
        if (limit === 'memory') await writeOptional(group(id), 'memory.swap.max', value ? '0' : 'max');
      }
    },
    entryFiles: (id) => [join(group(id), 'cgroup.procs')],
    async events(id) {
      const [oomKills, refusedForks] = await Promise.all([
        readEntry(group(id), 'memory.events', 'oom_kill'),
        readEntry(group(id), 'pids.events', 'max'),
      ]);
      return { oomKills, refusedForks };
    },
    async usage(id) {
      const [memBytes, pids, cpuUs] = await Promise.all([
        readCount(group(id), 'memory.current'),
        readCount(group(id), 'pids.current'),
        readEntry(group(id), 'cpu.stat', 'usage_usec'),
      ]);
      return { memBytes, pids, cpuMs: cpuUs === undefined ? undefined : Math.round(cpuUs / 1e3) };
    },
    empty: (id) => emptyGroup(group(id), () => kill(group(id))),
    remove,
    async sweep() {
      for (const id of await groupsBelow(directory)) await remove(id);
    },
    close: () => removeGroup(directory, () => Promise.resolve()),
  };
}

type Setting = readonly [limit: MissingLimit['limit'], name: string, value: string | undefined];

function settings({ memBytes, cpuMillicores, pids }: CgroupLimits): readonly Setting[] {
  const quota = cpuMillicores && `${cpuQuotaUs(cpuMillicores)} ${CPU_PERIOD_US}`;
  return [
    ['memory', 'memory.max', memBytes?.toString()],
    ['cpu', 'cpu.max', quota?.toString()],
    ['pids', 'pids.max', pids?.toString()],
  ];
}

/** All at once and without a gap in which they could fork; kernels before 5.14 lack it. */
async function kill(group: string): Promise<void> {
  try {
    await writeSetting(group, 'cgroup.kill', 1);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    await killMembers(group);
  }
}
