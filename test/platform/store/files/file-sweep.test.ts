import { expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { startFileSweep, sweepFiles } from '../../../../src/platform/store/files/file-sweep.ts';

const removed: string[] = [];
const filesOf = (...paths: readonly string[]) => ({
  async *list() {
    yield* paths;
  },
  remove: async (path: string) => void removed.push(path),
});

it('a sweep removes the files that no row names, in batches', async () => {
  const paths = Array.from({ length: 1_001 }, (_, at) => `f${at}`);
  const batches: number[] = [];
  const known = async (asked: readonly string[]) => {
    batches.push(asked.length);
    return new Set(asked.filter((path) => path !== 'f7' && path !== 'f1000'));
  };
  expect(await sweepFiles({ files: filesOf(...paths), known }, 0)).toBe(2);
  expect([batches, removed.splice(0)]).toEqual([
    [500, 500, 1],
    ['f7', 'f1000'],
  ]);
  expect(await sweepFiles({ files: filesOf(...paths), known }, 0, AbortSignal.abort())).toBe(0);
});

it('sweeps go on after one that failed, until they are closed', async () => {
  const lines: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  let sweeps = 0;
  const sweep = startFileSweep({
    ...{ everyMs: 1, problem: 'files were not removed', known: async () => new Set<string>() },
    log: createLog('info', { write: (line) => void lines.push(line) }),
    async open() {
      sweeps += 1;
      if (sweeps === 1) throw new Error('the place is away');
      return { ...filesOf('a'), remove: async () => resolve() };
    },
  });
  await promise;
  await sweep.close();
  expect(lines.join('')).toMatch(/files were not removed/);
});
