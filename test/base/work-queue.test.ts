import { describe, expect, it } from 'vitest';
import { WorkQueue } from '../../src/base/work-queue.ts';

describe('work for one key', () => {
  it('waits for the work before it', async () => {
    const queue = new WorkQueue();
    const first = Promise.withResolvers<void>();
    const done: number[] = [];
    const runs = [1, 2, 3].map((piece) =>
      queue.run('a', async () => {
        if (piece === 1) await first.promise;
        done.push(piece);
      }),
    );
    await queue.run('b', async () => undefined);
    expect(done).toEqual([]);
    first.resolve();
    await Promise.all(runs);
    expect(done).toEqual([1, 2, 3]);
  });

  it('is done although the work before it failed, and failure reaches its own caller alone', async () => {
    const queue = new WorkQueue();
    const failing = queue.run('a', async () => Promise.reject(new Error('first')));
    const after = queue.run('a', async () => 'second');
    await expect(failing).rejects.toThrow('first');
    expect(await after).toBe('second');
  });
});

describe('a work queue', () => {
  it('is idle when all that was given has settled, and keeps no key', async () => {
    const queue = new WorkQueue();
    let done = 0;
    for (let piece = 0; piece < 9; piece += 1)
      void queue.run(`key ${piece % 3}`, async () => void (done += 1));
    expect(queue.size).toBe(3);
    await queue.idle();
    expect([done, queue.size]).toEqual([9, 0]);
  });
});
