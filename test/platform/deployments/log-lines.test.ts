import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { LineQueue, MAX_LINE_BYTES } from '../../../src/platform/deployments/log-lines.ts';
import { createMask } from '../../../src/platform/deployments/log-mask.ts';

const at = new Date(0);
const line = (message: string) => ({ at, level: 'INFO', message }) as const;
const maskOf = (...values: readonly string[]) => createMask(values.map((value) => new Secret(value)));

describe('the queue of lines', () => {
  function createQueue(mask = maskOf()) {
    let now = 0;
    const queue = new LineQueue({ mask, now: () => now });
    return { queue, pass: (ms: number) => void (now += ms) };
  }

  it('gives lines in their order, masked', () => {
    const { queue } = createQueue(maskOf('12345678'));
    queue.add({ ...line('key 12345678'), instance: 'a' });
    queue.add(line('b'));
    expect(queue.size).toBe(2);
    expect(queue.take(1)).toEqual([{ ...line('key ***'), instance: 'a' }]);
    expect([queue.take(), queue.take()]).toEqual([[line('b')], []]);
  });

  it('cuts a line at 16 KiB, not within a character', () => {
    const { queue } = createQueue();
    queue.add(line('ä'.repeat(MAX_LINE_BYTES)));
    const [{ message = '' } = {}] = queue.take();
    expect(message).toMatch(/^ä+ … \(cut\)$/);
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(MAX_LINE_BYTES);
  });

  it('says that its producer has cut a line', () => {
    const { queue } = createQueue();
    queue.add(line('a'), true);
    expect(queue.take()).toEqual([line('a … (cut)')]);
  });

  it('shows no part of a secret at the end of a line that was cut', () => {
    const { queue } = createQueue(maskOf('secret-value-1'));
    queue.add(line('key secret-value'), true);
    queue.add(line(`${'x'.repeat(MAX_LINE_BYTES - 20)}secret-value-1`));
    const shown = queue.take().map(({ message }) => message.replace(/^x+/, 'x'));
    expect(shown).toEqual(['key *** … (cut)', 'x***']);
  });

  it('gives lines of one moment times that clients can follow them by, page after page', () => {
    const { queue } = createQueue();
    for (let n = 0; n < 200; n += 1) queue.add(line(String(n)));
    const all = queue.take(200).map(({ at: time, message }) => ({ ms: time.getTime(), message }));
    // As public clients do: from the time of the last line that they have, 30 lines at once.
    const known = new Set<string>();
    for (let start = 0, page = all.slice(0, 30); page.some(({ message }) => !known.has(message)); ) {
      for (const { message } of page) known.add(message);
      start = page.at(-1)?.ms ?? start;
      page = all.filter(({ ms }) => ms >= start).slice(0, 30);
    }
    expect(known.size).toBe(200);
    expect(all.at(-1)?.ms).toBeLessThan(50);
  });

  it('gives no line a time before that of an earlier one, unless the clock was wrong by much', () => {
    const { queue } = createQueue();
    for (const seconds of [100, 98, 101, 40]) queue.add({ ...line('a'), at: new Date(seconds * 1_000) });
    expect(queue.take().map(({ at: time }) => time.getTime() / 1_000)).toEqual([100, 100, 101, 40]);
  });

  it('takes 1000 lines a second, then counts what it drops', () => {
    const { queue, pass } = createQueue();
    for (let n = 0; n < 1_500; n += 1) queue.add(line(String(n)));
    pass(1_000);
    queue.add(line('next second'));
    const all = queue.take(5_000).map(({ message }) => message);
    const dropped = '500 lines were dropped: at most 1000 a second are kept';
    expect(all.slice(999)).toEqual(['999', dropped, 'next second']);
  });

  it('counts lines that its user drops, and says by which limit', () => {
    const queue = new LineQueue({ mask: maskOf(), now: () => 0, limits: '64 MiB an hour' });
    queue.drop();
    expect(queue.size).toBe(1);
    const [{ message = '' } = {}] = queue.take();
    expect(message).toBe('1 line was dropped: at most 1000 a second and 64 MiB an hour are kept');
  });

  it('knows how many bytes wait', () => {
    const { queue } = createQueue(maskOf('a-long-secret'));
    queue.add(line('ä a-long-secret'));
    expect(queue.bytes).toBe(6);
    queue.take();
    expect(queue.bytes).toBe(0);
  });

  it('tells of dropped lines also when no line follows', () => {
    const { queue } = createQueue();
    for (let n = 0; n < 1_001; n += 1) queue.add(line('a'));
    expect(queue.take(1_000)).toHaveLength(1_000);
    expect(queue.size).toBe(1);
    expect(queue.take()).toMatchObject([
      { level: 'WARNING', message: expect.stringMatching(/^1 line was /) },
    ]);
    expect(queue.size).toBe(0);
  });

  it('holds no more than the database may be behind', () => {
    const { queue, pass } = createQueue();
    for (let second = 0; second < 100; second += 1) {
      for (let n = 0; n < 1_000; n += 1) queue.add(line('a'));
      pass(1_000);
    }
    expect(queue.size).toBeLessThanOrEqual(4_001);
  });

  it('makes every text storable', () => {
    const { queue } = createQueue();
    queue.add(line('a\u0000b\ud800'));
    expect(queue.take()).toEqual([line('a\uFFFDb\uFFFD')]);
  });
});
