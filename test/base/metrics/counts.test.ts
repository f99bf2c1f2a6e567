import { describe, expect, it } from 'vitest';
import { Durations, NamedCounts, NamedDurations, OTHER } from '../../../src/base/metrics/counts.ts';

describe('counts by name', () => {
  it('are kept for each name in columns, and show the names that were counted', () => {
    const counts = new NamedCounts(2, 3);
    counts.add('a', 0);
    counts.add('b', 2, 5);
    counts.add('a', 0);
    expect(counts.rows()).toEqual([
      { name: 'a', values: [2, 0, 0] },
      { name: 'b', values: [0, 0, 5] },
    ]);
  });

  it('of names beyond the limit share one row, and a known name keeps its own', () => {
    const counts = new NamedCounts(2, 1);
    for (const name of ['a', 'b', 'c', 'd', 'a', 'c']) counts.add(name, 0);
    expect(counts.rows()).toEqual([
      { name: OTHER, values: [3] },
      { name: 'a', values: [2] },
      { name: 'b', values: [1] },
    ]);
  });

  it('of a name that is called like the shared row are in it', () => {
    const counts = new NamedCounts(2, 1);
    counts.add(OTHER, 0);
    expect(counts.rows()).toEqual([{ name: OTHER, values: [1] }]);
  });

  it('of names that are written alike are one row: no two series have the same labels', () => {
    const counts = new NamedCounts(9, 1);
    for (const name of ['x\ud800', 'x\ud801', 'x\ufffd', 'y'.repeat(500), 'y'.repeat(501)])
      counts.add(name, 0);
    expect(counts.rows()).toEqual([
      { name: 'x\ufffd', values: [3] },
      { name: 'y'.repeat(128), values: [2] },
    ]);
  });
});

describe('durations', () => {
  it('are counted in every bucket whose bound they do not exceed', () => {
    const durations = new Durations([0.01, 0.1, 1]);
    for (const seconds of [0.01, 0.0625, 0.5, 2]) durations.add(seconds);
    expect(durations.read()).toEqual({
      bounds: [0.01, 0.1, 1],
      buckets: [1, 2, 3],
      count: 4,
      sum: 2.5725,
    });
  });

  it('by name are the same for each', () => {
    const durations = new NamedDurations(1, [0.1]);
    for (const [name, seconds] of [
      ['a', 0.05],
      ['a', 0.5],
      ['b', 0.25],
    ] as const)
      durations.add(name, seconds);
    expect(durations.rows()).toEqual([
      { name: OTHER, bounds: [0.1], buckets: [0], count: 1, sum: 0.25 },
      { name: 'a', bounds: [0.1], buckets: [1], count: 2, sum: 0.55 },
    ]);
  });
});
