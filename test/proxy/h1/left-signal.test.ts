// The promise of a connection's end, whoever asks for it before or after the end.
import { expect, it } from 'vitest';
import { LeftSignal } from '../../../src/proxy/h1/left-signal.ts';

it('resolves for everybody who asked before', async () => {
  const signal = new LeftSignal();
  const waiting = [signal.promise, signal.promise];
  let isSettled = false;
  void waiting[0]?.then(() => (isSettled = true));
  await Promise.resolve();
  expect(isSettled).toBe(false);
  signal.settle();
  expect(await Promise.all(waiting)).toEqual([undefined, undefined]);
});

it('is resolved for those who ask after', async () => {
  const signal = new LeftSignal();
  signal.settle();
  signal.settle();
  expect(await signal.promise).toBeUndefined();
});
