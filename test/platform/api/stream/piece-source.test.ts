// Waiting for the pieces of a stream: it ends with a piece, with silence, with the end, or with an abort.
import { expect, it } from 'vitest';
import { PieceSource } from '../../../../src/platform/api/stream/piece-source.ts';

/** An iterable that is pushed to, and knows whether its reader has left it. */
function createPushed<T>() {
  const queue: (IteratorResult<T> | Error)[] = [];
  let wake: (() => void) | undefined;
  const state = { asked: 0, isLeft: false };
  const push = (one: IteratorResult<T> | Error): void => {
    queue.push(one);
    wake?.();
  };
  const iterator: AsyncIterator<T> = {
    async next() {
      state.asked += 1;
      while (queue.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      const [one] = queue.splice(0, 1);
      if (one instanceof Error) throw one;
      return one!;
    },
    async return() {
      state.isLeft = true;
      return { done: true, value: undefined };
    },
  };
  return { state, push, pieces: { [Symbol.asyncIterator]: () => iterator } };
}

const open = new AbortController().signal;

it('finds each piece, then the end', async () => {
  const { push, pieces } = createPushed<number>();
  using source = new PieceSource(pieces, { idleMs: 60_000, signal: open });
  for (const value of [1, 2]) push({ done: false, value });
  push({ done: true, value: undefined });
  expect([await source.next(), await source.next(), await source.next()]).toEqual([
    { piece: 1 },
    { piece: 2 },
    'ended',
  ]);
});

it('reports silence as often as it lasts, and asks the producer once', async () => {
  const { push, pieces, state } = createPushed<number>();
  using source = new PieceSource(pieces, { idleMs: 1, signal: open });
  expect([await source.next(), await source.next(), state.asked]).toEqual(['idle', 'idle', 1]);
  push({ done: false, value: 3 });
  // The piece may be there only after another wait.
  let found = await source.next();
  while (found === 'idle') found = await source.next();
  expect([found, state.asked]).toEqual([{ piece: 3 }, 1]);
});

it('rejects with what the producer throws', async () => {
  const { push, pieces } = createPushed<number>();
  using source = new PieceSource(pieces, { idleMs: 60_000, signal: open });
  push(new RangeError('a failure'));
  await expect(source.next()).rejects.toThrow('a failure');
});

it('ends a wait with the abort, also where a piece is there, and leaves the producer', async () => {
  const { push, pieces, state } = createPushed<number>();
  const abort = new AbortController();
  {
    using source = new PieceSource(pieces, { idleMs: 60_000, signal: abort.signal });
    const waiting = source.next();
    abort.abort();
    push({ done: false, value: 1 });
    expect([await waiting, await source.next()]).toEqual(['aborted', 'aborted']);
    expect(state.isLeft).toBe(false);
  }
  expect(state.isLeft).toBe(true);
});
