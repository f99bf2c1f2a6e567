// The set of integers does what a Set does.
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { IntSet } from '../../../src/proxy/mask/int-set.ts';
import { runs } from '../../support/run-size.ts';

it('contains what was added and nothing else', () => {
  const value = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.integer());
  fc.assert(
    fc.property(fc.array(value, { maxLength: 200 }), fc.array(value), (added, asked) => {
      const set = new IntSet();
      for (const each of added) set.add(each);
      const expected = new Set(added);
      expect(set.size).toBe(expected.size);
      const seen: number[] = [];
      set.forEach((each) => seen.push(each));
      expect(new Set(seen)).toEqual(expected);
      expect(seen).toHaveLength(expected.size);
      for (const each of [...added, ...asked]) expect(set.has(each)).toBe(expected.has(each));
    }),
    { numRuns: runs(1_000) },
  );
});

it('takes at most sixteen bytes for each of many', () => {
  const set = new IntSet();
  for (let i = 0; i < 100_000; i += 1) set.add(i * 7_919);
  expect(set.size).toBe(100_000);
  expect(set.bytes).toBeLessThanOrEqual(1_600_000);
});
