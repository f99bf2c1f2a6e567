import { describe, expect, it } from 'vitest';
import { WorkQueue } from '../../src/base/work-queue.ts';

describe('work in a queue', () => {
  it('waits for the work before it', async () => {
    const queue = new WorkQueue();
    const first = Promise.withResolvers<void>();
    const done: number[] = [];
    const runs = [1, 2, 3].map((piece) =>
      queue.run(async () => {
        if (piece === 1) await first.promise;
        done.push(piece);
      }),
    );
    await new Promise(setImmediate);
    expect(done).toEqual([]);
    first.resolve();
    await Promise.all(runs);
    expect(done).toEqual([1, 2, 3]);
  });

  it('runs although the work before it failed, and only the caller of the failed work sees the failure', async () => {
    const queue = new WorkQueue();
    const failing = queue.run(async () => Promise.reject(new Error('first')));
    const after = queue.run(async () => 'second');
    await expect(failing).rejects.toThrow('first');
    expect(await after).toBe('second');
  });
});

describe('a work queue', () => {
  it('is idle when everything that it was given has settled', async () => {
    const queue = new WorkQueue();
    let done = 0;
    for (let piece = 0; piece < 9; piece += 1) void queue.run(async () => void (done += 1));
    await queue.idle();
    expect(done).toBe(9);
  });
});
