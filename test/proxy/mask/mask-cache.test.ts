// The masks of a policy: one for each array of values, up to a number of bytes, compiled without delaying others.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { nextTurn } from '../../../src/base/steps.ts';
import type { Mask } from '../../../src/proxy/mask/mask.ts';
import { MaskCache } from '../../../src/proxy/mask/mask-cache.ts';

const same = (value: string): string => value;
const values = (count: number, bytes: number, tag = 'v'): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${tag}${i}-`.padEnd(bytes, (i * 7_919).toString(36)));

describe('a mask', () => {
  it('is compiled once for an array of values', () => {
    const cache = new MaskCache();
    const few = values(2, 40);
    expect(cache.of(few, false, same)).toBe(cache.of(few, false, same));
    expect(cache.of([...few], false, same)).not.toBe(cache.of(few, false, same));
  });

  it('of few values is there at once, of many later, and then at once', async () => {
    const cache = new MaskCache();
    expect(cache.of(values(10, 40), true, same)).not.toBeInstanceOf(Promise);
    const many = values(500, 40);
    for (const searchesBodies of [false, true]) {
      const later = cache.of(many, searchesBodies, same);
      expect(later).toBeInstanceOf(Promise);
      const [first, second] = await Promise.all([later, cache.of(many, searchesBodies, same)]);
      expect(second).toBe(first);
      expect(cache.of(many, searchesBodies, same)).toBe(first);
    }
  });

  it('of few values with many forms is prepared for bodies too', async () => {
    const cache = new MaskCache();
    const quotes = [`sesame${'"'.repeat(4_000)}`];
    const mask = await cache.of(quotes, true, same);
    expect(mask.bytes).toBeGreaterThan(65_536);
    expect(cache.of(quotes, true, same)).toBe(mask);
  });

  it('of too many values is larger than what may be searched for', async () => {
    const mask = await new MaskCache().of(values(32_000, 8, ''), false, same);
    expect([mask.needles.length, mask.bytes > 524_288]).toEqual([0, true]);
  });
});

describe('what is kept', () => {
  it('has at most so many bytes, and the newest', async () => {
    const cache = new MaskCache();
    const sets = Array.from({ length: 20 }, (_, i) => values(800, 40, `s${i}-`));
    let newest: Mask | undefined;
    for (const set of sets) newest = await cache.of(set, true, same);
    expect(cache.bytes).toBeGreaterThan(0);
    expect(cache.bytes).toBeLessThanOrEqual(12 * 2 ** 20);
    expect(cache.of(sets.at(-1) ?? [], true, same)).toBe(newest);
    expect(cache.of(sets[0] ?? [], true, same)).toBeInstanceOf(Promise);
  });

  it('is as much as the masks take', async () => {
    setFlagsFromString('--expose-gc');
    const used = async (): Promise<number> => {
      // What a weak reference was asked for in a turn lives until its end.
      for (let round = 0; round < 3; round += 1) {
        await nextTurn();
        runInNewContext('gc')();
      }
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const sets = Array.from({ length: 12 }, (_, i) => values(800, 40, `s${i}-`));
    for (const searchesBodies of [false, true]) {
      const cache = new MaskCache();
      const before = await used();
      for (const set of sets) await cache.of(set, searchesBodies, same);
      expect((await used()) - before).toBeLessThan(1.5 * cache.bytes);
    }
  });

  it('goes on after a failure', async () => {
    const cache = new MaskCache();
    const fail = (): string => {
      throw new Error('broken');
    };
    await expect(cache.of(values(500, 40), false, fail)).rejects.toThrow('broken');
    await expect(cache.of(values(500, 40), false, same)).resolves.toBeDefined();
  });
});
