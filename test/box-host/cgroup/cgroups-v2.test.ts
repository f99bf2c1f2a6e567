import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cgroupsV2 } from '../../../src/box-host/cgroup/cgroups-v2.ts';
import { cpuQuotaUs, noCgroups } from '../../../src/box-host/cgroup/cgroups.ts';
import { createScratch } from '../../support/scratch.ts';

// A directory of plain files stands for the kernel's: it shows what is written.
describe('cgroups version 2', () => {
  it('write the limits that were asked for', async () => {
    await using scratch = await createScratch();
    const cgroups = cgroupsV2(scratch.path, []);
    await cgroups.create('one', { memBytes: 1_048_576, cpuMillicores: 250, pids: 20 });
    const read = (name: string) => readFile(join(scratch.path, 'one', name), 'utf8');
    expect(await read('memory.max')).toBe('1048576');
    expect(await read('cpu.max')).toBe('25000 100000');
    expect(await read('pids.max')).toBe('20');
    expect(cgroups.entryFiles('one')).toEqual([join(scratch.path, 'one', 'cgroup.procs')]);
  });

  it('write nothing for a limit that was not asked for, or that is missing', async () => {
    await using scratch = await createScratch();
    const cgroups = cgroupsV2(scratch.path, [{ limit: 'cpu', reason: 'not delegated' }]);
    await cgroups.create('one', { cpuMillicores: 250, pids: undefined });
    expect(await readdir(join(scratch.path, 'one'))).toEqual([]);
  });

  it('count what is swapped out as memory, and lift a limit that is not asked for any more', async () => {
    await using scratch = await createScratch();
    const group = join(scratch.path, 'one');
    await mkdir(group);
    await writeFile(join(group, 'memory.swap.max'), 'max');
    const read = (name: string) => readFile(join(group, name), 'utf8');
    const cgroups = cgroupsV2(scratch.path, []);
    await cgroups.create('one', { memBytes: 1_048_576, cpuMillicores: 250, pids: 20 });
    expect([await read('memory.max'), await read('memory.swap.max')]).toEqual(['1048576', '0']);
    await cgroups.create('one', {});
    const names = ['memory.max', 'memory.swap.max', 'cpu.max', 'pids.max'];
    expect(await Promise.all(names.map(read))).toEqual(['max', 'max', 'max', 'max']);
  });

  it('read the usage', async () => {
    await using scratch = await createScratch();
    const group = join(scratch.path, 'one');
    await mkdir(group);
    await writeFile(join(group, 'memory.current'), '4096\n');
    await writeFile(join(group, 'pids.current'), '3\n');
    await writeFile(join(group, 'cpu.stat'), 'usage_usec 12000\nuser_usec 1\n');
    const cgroups = cgroupsV2(scratch.path, []);
    expect(await cgroups.usage('one')).toEqual({ memBytes: 4096, pids: 3, cpuMs: 12 });
    expect(await cgroups.usage('none')).toEqual({ memBytes: undefined, pids: undefined, cpuMs: undefined });
    await rm(group, { recursive: true });
  });

  it('read what the limits have done', async () => {
    await using scratch = await createScratch();
    const group = join(scratch.path, 'one');
    await mkdir(group);
    await writeFile(join(group, 'memory.events'), 'low 0\noom 3\noom_kill 2\noom_group_kill 0\n');
    await writeFile(join(group, 'pids.events'), 'max 7\n');
    const cgroups = cgroupsV2(scratch.path, []);
    expect(await cgroups.events('one')).toEqual({ oomKills: 2, refusedForks: 7 });
    expect(await cgroups.events('none')).toEqual({ oomKills: undefined, refusedForks: undefined });
  });

  it('remove a group that is gone already', async () => {
    await using scratch = await createScratch();
    await expect(cgroupsV2(scratch.path, []).remove('gone')).resolves.toBeUndefined();
  });
});

describe('cgroups', () => {
  it('grant at least a millisecond of a period', () => {
    expect([1, 250, 2_000].map(cpuQuotaUs)).toEqual([1_000, 25_000, 200_000]);
  });

  it('name every limit that a machine without them lacks', () => {
    expect(noCgroups('not mounted').missing.map(({ limit }) => limit)).toEqual(['memory', 'cpu', 'pids']);
  });
});
