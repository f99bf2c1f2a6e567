import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toTree, type TreeRun } from '../../../../src/platform/traces/pages/run-tree.ts';

const runOf = (id: string, parent: string | null, from = 0, to: number | null = from + 1): TreeRun => {
  const time = (second: number): string => `2026-11-20T12:00:${String(second).padStart(2, '0')}.000000Z`;
  return {
    ...{
      id,
      session_id: 's',
      trace_id: 't',
      parent_run_id: parent,
      name: id,
      nameBytes: 1,
      run_type: 'chain',
    },
    ...{
      status: 'success',
      start_time: time(from),
      end_time: to === null ? null : time(to),
      total_tokens: null,
    },
  };
};
const shapeOf = (runs: readonly TreeRun[]): string =>
  toTree(runs)
    .map(({ run, depth, isOrphan }) => `${'.'.repeat(depth)}${run.id}${isOrphan ? '?' : ''}`)
    .join(' ');

describe('the tree of a trace', () => {
  it('has each run below its parent, in the order of the starts', () => {
    const runs = [
      runOf('a', null),
      runOf('b', 'a', 1),
      runOf('c', 'b', 2),
      runOf('d', 'a', 3),
      runOf('e', 'b', 4),
    ];
    expect(shapeOf(runs)).toBe('a .b ..c ..e .d');
  });

  it('has every run, whatever the parents are', () => {
    expect(shapeOf([runOf('b', 'gone'), runOf('c', 'b')])).toBe('b? .c');
    expect(shapeOf([runOf('a', 'a'), runOf('b', 'c'), runOf('c', 'b'), runOf('d', 'c')])).toBe('a b .c ..d');
    const ids = ['a', 'b', 'c', 'd', 'e'];
    const runs = fc.tuple(
      ...ids.map((id) => fc.constantFrom(null, 'gone', ...ids).map((parent) => runOf(id, parent))),
    );
    fc.assert(
      fc.property(runs, (given) => {
        expect(
          toTree(given)
            .map(({ run }) => run.id)
            .toSorted(),
        ).toEqual(ids);
      }),
    );
  });

  it('places bars within the time of the trace', () => {
    const bars = (runs: readonly TreeRun[]) => toTree(runs).map(({ from, width }) => [from, width]);
    expect(bars([runOf('a', null, 0, 10), runOf('b', 'a', 5, 10), runOf('c', 'a', 9, null)])).toEqual([
      [0, 1000],
      [500, 500],
      [900, 100],
    ]);
    // Ends before its start, and a trace without any time.
    expect(bars([runOf('a', null, 0, 10), runOf('b', 'a', 10, 2)])).toEqual([
      [0, 1000],
      [994, 6],
    ]);
    expect(bars([runOf('a', null, 3, null)])).toEqual([[0, 1000]]);
  });

  it('of a thousand runs in one another is made without recursion', () => {
    const runs = Array.from({ length: 1_000 }, (_, at) => runOf(`r${at}`, at === 0 ? null : `r${at - 1}`));
    expect(toTree(runs).at(-1)).toMatchObject({ depth: 999 });
  });
});
