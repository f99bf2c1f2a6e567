import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  findTree,
  parsePrivateBytes,
  parseStat,
  privateBytes,
  processesOf,
  readProcess,
  readProcessTable,
} from '../../../src/workload/limits/process-table.ts';

const stat = (pid: number, name: string, state: string, parent: number, session: number): string =>
  `${pid} (${name}) ${state} ${parent} ${session} ${session} 0 -1 4194304 ${'0 '.repeat(12)}777 1000 20`;

describe('a line of /proc/PID/stat', () => {
  it.each(['node', 'a b', ') S 1 1 1', '((', ''])('of a program named %j', (name) => {
    expect(parseStat(stat(42, name, 'S', 7, 40))).toEqual({
      pid: 42,
      parent: 7,
      session: 40,
      startedTicks: 777,
    });
  });

  it.each(['Z', 'X'])('of a process that has ended (%s), or of none, is none', (state) => {
    expect(parseStat(stat(42, 'node', state, 7, 40))).toBeUndefined();
    expect(parseStat('')).toBeUndefined();
  });
});

describe('a tree of processes', () => {
  const table = new Map(
    [
      [10, 1, 10],
      [11, 10, 10],
      [12, 11, 12],
      [13, 1, 10],
      [14, 13, 14],
      [20, 1, 20],
    ].map(([pid = 0, parent = 0, session = 0]) => [pid, { pid, parent, session, startedTicks: 0 }]),
  );

  it('has descendants, and orphans of its session with theirs', () =>
    expect(findTree(table, 10).toSorted()).toEqual([10, 11, 12, 13, 14]));
  it('has orphans when its root has ended', () => {
    const rest = new Map([...table].filter(([pid]) => pid !== 10));
    expect(findTree(rest, 10).toSorted()).toEqual([11, 12, 13, 14]);
  });
  it('is empty without its root', () => expect(findTree(table, 99)).toEqual([]));
});

describe('the processes of this machine', () => {
  it('are listed with their parents, and their memory is counted', async () => {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child, 'spawn');
    const { pid = 0 } = child;
    expect(readProcessTable().get(pid)).toMatchObject({ pid, parent: process.pid });
    expect(privateBytes(process.pid)).toBeGreaterThan(1024 * 1024);
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    expect(readProcess(pid)).toBeUndefined();
    expect(privateBytes(pid)).toBe(0);
  });

  it('are found by their user', () => {
    const own = process.getuid?.() ?? 0;
    expect(processesOf(new Set([own]))).toContain(process.pid);
    expect(processesOf(new Set([own + 1_234_567]))).toEqual([]);
  });

  it('have anonymous, shared and swapped memory', () =>
    expect(
      parsePrivateBytes(
        'VmRSS:\t 999 kB\nRssAnon:\t  10 kB\nRssFile:\t 500 kB\nRssShmem:\t 2 kB\nVmSwap:\t1 kB\n',
      ),
    ).toBe(13 * 1024));
});
