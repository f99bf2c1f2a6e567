// The size of the heap of an export worker: chosen by the platform that starts it, by the operator, or else by the worker itself.
import { expect, it } from 'vitest';
import { exportWorkerSwitches, lacksHeapSize } from '../../../src/cli/platform/export-worker-heap.ts';

it('grows with the runs that are executed at once', () => {
  expect(exportWorkerSwitches(1)).toContain('--max-old-space-size=384');
  expect(exportWorkerSwitches(4)).toContain('--max-old-space-size=768');
});

it.each([
  ['nobody has chosen it', {}, ['--disable-sigusr1'], true],
  ['the worker has started itself with it', {}, exportWorkerSwitches(2), false],
  ['the operator has chosen it on the command line', {}, ['--max_old_space_size=512'], false],
  ['the operator has chosen it in NODE_OPTIONS', { NODE_OPTIONS: '--max-old-space-size=512' }, [], false],
  ['a profiler runs, whose signal would end the program that follows', {}, ['--cpu-prof'], false],
  ['a profiler runs by NODE_OPTIONS', { NODE_OPTIONS: '--cpu-prof' }, [], false],
  ['the platform has started the worker', { SALLYPORT_PARENT_INPUT: '3' }, [], false],
])('is to be chosen by the worker or not where %s', (_, env, execArgv, expected) => {
  expect(lacksHeapSize({ env, execArgv })).toBe(expected);
});

it('is not chosen by a worker with the IPC channel of a parent, which its replacement would lose', () => {
  expect(lacksHeapSize({ env: {}, execArgv: [], connected: true })).toBe(false);
});
