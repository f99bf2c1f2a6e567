// The limits that the processes of a box begin with, also where the box host may not raise its own.
import { expect, it } from 'vitest';
import { limitOptions } from '../../../src/box-host/cgroup/resource-limits.ts';

const line = (name: string, soft: string, hard: string, unit: string): string =>
  `${name.padEnd(26)}${soft.padEnd(21)}${hard.padEnd(21)}${unit.padEnd(10)}\n`;

const ownLimits = (core: string, files: string, capabilities: string) => ({
  limits:
    line('Limit', 'Soft Limit', 'Hard Limit', 'Units') +
    line('Max core file size', '0', core, 'bytes') +
    line('Max open files', '1024', files, 'files'),
  status: `Name:\tnode\nCapEff:\t${capabilities}\n`,
});
const NONE = '0000000000000000';
const ALL = '000001ffffffffff';

it.each([
  ['unlimited', '1048576', NONE, ['--core=1', '--nofile=1024:65536']],
  ['0', '4096', NONE, ['--core=0', '--nofile=1024:4096']],
  ['1', '512', NONE, ['--core=1', '--nofile=512:512']],
  ['0', '512', ALL, ['--core=1', '--nofile=1024:65536']],
])('with %s and %s, and the capabilities %s', (core, files, capabilities, expected) => {
  const own = ownLimits(core, files, capabilities);
  expect(limitOptions({}, own)).toEqual(expected);
  expect(limitOptions({ processes: 64 }, own)).toEqual([...expected, '--nproc=64']);
});

it('limits memory, files and their size where it is asked for', () => {
  const own = ownLimits('unlimited', '1048576', ALL);
  const limits = { openFiles: 100, dataBytes: 1_000_000, fileBytes: 2_000_000 };
  expect(limitOptions(limits, own)).toEqual([
    '--core=1',
    '--nofile=100:100',
    '--data=1000000',
    '--fsize=2000000',
  ]);
});
