import { expect, it } from 'vitest';
import { describeExit } from '../../../../src/platform/agent-server/workers/worker-exit.ts';

it.each([
  ['exit code 3', false, 'ended by itself with exit code 3'],
  ['SIGSEGV', false, 'was ended by SIGSEGV'],
  ['SIGKILL', false, 'was ended by SIGKILL, as the kernel does where memory runs out'],
  ['SIGABRT', true, 'reached its memory limit of 1024 MiB'],
  ['SIGABRT', false, 'was ended by SIGABRT'],
  // It has only written what V8 would.
  ['exit code 1', true, 'ended by itself with exit code 1'],
  ['EMFILE', false, 'EMFILE'],
])('a worker that ends by %s (out of heap: %s) %s', (how, isOutOfHeap, text) => {
  expect(describeExit({ how, isOutOfHeap, heapMegabytes: 1024 })).toBe(text);
});
