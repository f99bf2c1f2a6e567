import { describe, expect, it } from 'vitest';
import {
  createStepQueue,
  type QueuedStep,
} from '../../../../src/platform/sandboxes/reconciliation/step-queue.ts';

type Held = QueuedStep & { readonly begun: Promise<void>; end(isOpen?: boolean): void };

/** A step that lasts until its `end` is called. */
function held(id: string, order: string[] = []): Held {
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<boolean>()];
  return {
    id,
    begun: begun.promise,
    end: (isOpen = false) => ended.resolve(isOpen),
    work: () => {
      order.push(id);
      begun.resolve();
      return ended.promise;
    },
  };
}

const LONG_MS = 3_600_000;

describe('the steps of the boxes of a machine', () => {
  it('are so many at a time, and the next begins when one ends', async () => {
    const order: string[] = [];
    const queue = createStepQueue({ concurrency: 2, slowMs: LONG_MS, onOpen: () => undefined });
    const [a, b, c] = [held('a', order), held('b', order), held('c', order)];
    queue.replace([a, b, c]);
    expect(order).toEqual(['a', 'b']);
    b.end();
    await c.begun;
    expect([...queue.clear()]).toEqual(['a', 'c']);
    for (const one of [a, c]) one.end();
    await queue.close();
  });

  it('that take long hold up nobody', async () => {
    const queue = createStepQueue({ concurrency: 1, slowMs: 1, onOpen: () => undefined });
    const all = ['a', 'b', 'c', 'd'].map((id) => held(id));
    queue.replace(all);
    await all.at(-1)?.begun;
    expect([...queue.clear()]).toEqual(['a', 'b', 'c', 'd']);
    for (const one of all) one.end();
    await queue.close();
    const next = held('e');
    queue.replace([next]);
    await next.begun;
    next.end();
  });

  it('that have waited longest come first: those that fail again and again do not keep others from their turn', async () => {
    const order: string[] = [];
    const queue = createStepQueue({ concurrency: 1, slowMs: LONG_MS, onOpen: () => undefined });
    const pass = async (): Promise<void> => {
      const [a, b, c] = [held('a', order), held('b', order), held('c', order)];
      queue.replace([a, b, c]);
      await Promise.race([a.begun, b.begun, c.begun]);
      queue.clear();
      for (const one of [a, b, c]) one.end();
      await queue.close();
    };
    for (let count = 0; count < 5; count += 1) await pass();
    expect(order).toEqual(['a', 'b', 'c', 'a', 'b']);
  });

  it('are decided anew while they wait; a box has one at a time', async () => {
    const order: string[] = [];
    const queue = createStepQueue({ concurrency: 1, slowMs: LONG_MS, onOpen: () => undefined });
    const [a, old] = [held('a', order), held('old', order)];
    queue.replace([a, old]);
    const fresh = held('fresh', order);
    queue.replace([held('a', order), fresh]);
    a.end();
    await fresh.begun;
    expect(order).toEqual(['a', 'fresh']);
    fresh.end();
    await queue.close();
  });

  it('ask for another look when they are not done', async () => {
    const opened = Promise.withResolvers<void>();
    const queue = createStepQueue({ concurrency: 1, slowMs: LONG_MS, onOpen: opened.resolve });
    const one = held('a');
    queue.replace([one]);
    one.end(true);
    await opened.promise;
  });
});
