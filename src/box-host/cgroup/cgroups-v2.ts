// Limits by cgroups version 2: one tree, in which our part was delegated to us.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cgroups, type CgroupLimits, CPU_PERIOD_US, cpuQuotaUs, type MissingLimit } from './cgroups.ts';
import {
  codeOf,
  createGroup,
  groupsBelow,
  killMembers,
  readCount,
  removeGroup,
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
      await createGroup(group(id));
      for (const [limit, name, value] of settings(limits))
        if (held(limit)) await writeSetting(group(id), name, value);
    },
    entryFiles: (id) => [join(group(id), 'cgroup.procs')],
    async usage(id) {
      const [memBytes, pids, cpu] = await Promise.all([
        readCount(group(id), 'memory.current'),
        readCount(group(id), 'pids.current'),
        readFile(join(group(id), 'cpu.stat'), 'utf8').catch(() => ''),
      ]);
      const [, usageUs] = /^usage_usec (\d+)$/m.exec(cpu) ?? [];
      return { memBytes, pids, cpuMs: usageUs === undefined ? undefined : Math.round(Number(usageUs) / 1e3) };
    },
    remove,
    async sweep() {
      for (const id of await groupsBelow(directory)) await remove(id);
    },
    close: () => removeGroup(directory, () => Promise.resolve()),
  };
}

function settings(limits: CgroupLimits): readonly (readonly [MissingLimit['limit'], string, string])[] {
  const { memBytes, cpuMillicores, pids } = limits;
  return [
    ...(memBytes === undefined ? [] : ([['memory', 'memory.max', String(memBytes)]] as const)),
    ...(cpuMillicores === undefined
      ? []
      : ([['cpu', 'cpu.max', `${cpuQuotaUs(cpuMillicores)} ${CPU_PERIOD_US}`]] as const)),
    ...(pids === undefined ? [] : ([['pids', 'pids.max', String(pids)]] as const)),
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
