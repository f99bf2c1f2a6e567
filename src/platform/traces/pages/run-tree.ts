// The runs of a trace as a tree: each below its parent, in the order of their starts, and where it is between the start and the end of
// the trace. Whatever clients have sent: parents that are absent, runs that are their own parents, ends before starts. Pure.
import type { FoundRun } from '../trace-store.ts';
import { microsecondsOf } from '../../api/pages/page-time.ts';

export type TreeRun = Pick<
  FoundRun,
  | 'id'
  | 'session_id'
  | 'trace_id'
  | 'parent_run_id'
  | 'name'
  | 'run_type'
  | 'status'
  | 'start_time'
  | 'end_time'
  | 'total_tokens'
> & {
  /** Of the whole name, of which `name` is the beginning. */
  readonly nameBytes: number;
};

export type TreeRow = {
  readonly run: TreeRun;
  readonly depth: number;
  /** Its parent is not among the runs of the trace. */
  readonly isOrphan: boolean;
  /** In thousandths of the time of the trace. */
  readonly from: number;
  readonly width: number;
};

/** `runs` in the order of their starts. */
export function toTree(runs: readonly TreeRun[]): readonly TreeRow[] {
  const known = new Set(runs.map(({ id }) => id));
  const isTop = ({ id, parent_run_id: parent }: TreeRun): boolean =>
    parent === null || parent === id || !known.has(parent);
  const children = Map.groupBy(
    runs.filter((run) => !isTop(run)),
    ({ parent_run_id }) => parent_run_id,
  );
  const placed: { readonly run: TreeRun; readonly depth: number }[] = [];
  const seen = new Set<string>();
  const place = (top: TreeRun): void => {
    const stack = [{ run: top, depth: 0 }];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      if (seen.has(next.run.id)) continue;
      seen.add(next.run.id);
      placed.push(next);
      const depth = next.depth + 1;
      stack.push(...(children.get(next.run.id) ?? []).toReversed().map((run) => ({ run, depth })));
    }
  };
  for (const run of runs) if (isTop(run)) place(run);
  // Of a circle no run is at the top.
  for (const run of runs) place(run);
  const span = spanOf(runs);
  return placed.map(({ run, depth }) => ({
    ...{ run, depth, ...barOf(run, span) },
    isOrphan: run.parent_run_id !== null && !known.has(run.parent_run_id),
  }));
}

type Span = { readonly start: number; readonly length: number };

function spanOf(runs: readonly TreeRun[]): Span {
  let [start, end] = [Infinity, -Infinity];
  for (const run of runs) {
    start = Math.min(start, microsecondsOf(run.start_time));
    end = Math.max(end, microsecondsOf(run.end_time ?? run.start_time));
  }
  return { start, length: Math.max(1, end - start) };
}

/** At least as wide as can be seen. A run without an end lasts until that of the trace. */
const MIN_WIDTH = 6;

function barOf(run: TreeRun, { start, length }: Span): Pick<TreeRow, 'from' | 'width'> {
  const begun = microsecondsOf(run.start_time) - start;
  const ended = run.end_time === null ? length : microsecondsOf(run.end_time) - start;
  const width = Math.max(MIN_WIDTH, Math.round((1000 * Math.max(0, ended - begun)) / length));
  const from = Math.min(1000 - MIN_WIDTH, Math.round((1000 * begun) / length));
  return { from, width: Math.min(width, 1000 - from) };
}
