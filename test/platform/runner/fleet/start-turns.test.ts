// How many starts run at once, and who does not count.
import { expect, it } from 'vitest';
import { createStartTurns } from '../../../../src/platform/runner/fleet/start-turns.ts';

const never: AbortSignal = new AbortController().signal;

function work() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const run = (): Promise<void> => {
    begun.resolve();
    return promise;
  };
  return { run, begun: begun.promise, end: resolve };
}

it('one after the other, also after one that fails', async () => {
  const turns = createStartTurns(1);
  const [first, second, third] = [work(), work(), work()];
  const order: string[] = [];
  const all = [
    turns.run(first.run, never).then(() => order.push('first')),
    turns.run(() => Promise.reject(new Error('no')), never).catch(() => order.push('failed')),
    turns.run(second.run, never).then(() => order.push('second')),
    turns.run(third.run, never).then(() => order.push('third')),
  ];
  for (const one of [third, second, first]) one.end();
  await Promise.all(all);
  expect(order).toEqual(['first', 'failed', 'second', 'third']);
});

it('one that takes long does not hold up the others', async () => {
  const turns = createStartTurns(1, 10);
  const [slow, next] = [work(), work()];
  const running = turns.run(slow.run, never);
  const following = turns.run(next.run, never);
  await next.begun;
  next.end();
  await following;
  slow.end();
  await running;
});

it('one that is given up leaves its place to the next', async () => {
  const turns = createStartTurns(1);
  const [first, next] = [work(), work()];
  const running = turns.run(first.run, never);
  const giving = new AbortController();
  const given = turns.run(work().run, giving.signal);
  const following = turns.run(next.run, never);
  giving.abort(new Error('given up'));
  await expect(given).rejects.toThrow('given up');
  await expect(turns.run(work().run, giving.signal)).rejects.toThrow('given up');
  first.end();
  await next.begun;
  next.end();
  await Promise.all([running, following]);
});
