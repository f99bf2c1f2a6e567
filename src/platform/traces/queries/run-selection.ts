// What a caller asks for, as a selection of the trace store: every field is a condition, and the window has its bounds. Pure.
import { InvalidInput } from '../../../base/domain-error.ts';
import type { ScalarColumn } from '../filter/fields.ts';
import { type Filter, toFilter } from '../filter/filter.ts';
import type { RunSelection, RunWindow } from '../trace-store.ts';
import type { GivenSelection } from './run-query-schema.ts';

/** Throws InvalidInput for a window that is too long. */
export function toSelection(workspaceId: string, given: GivenSelection, nowMs: number): RunSelection {
  const { id: ids, session, trace_filter: traceFilter, tree_filter: treeFilter } = given;
  if (ids && ids.length > 0) return { workspaceId, ids };
  return {
    workspaceId,
    window: toWindow(given, nowMs),
    filter: toFilter(conditionsOf(given)),
    ...(session && session.length > 0 ? { projects: [...new Set(session)] } : {}),
    ...(traceFilter ? { traceFilter } : {}),
    ...(treeFilter ? { treeFilter } : {}),
  };
}

function conditionsOf(given: GivenSelection): readonly Filter[] {
  const { trace, parent_run, run_type, reference_example, error, query, execution_order } = given;
  const conditions: Filter[] = [];
  if (trace) conditions.push(hasText('trace_id', trace));
  if (parent_run) conditions.push(hasText('parent_run_id', parent_run));
  if (run_type) conditions.push(hasText('run_type', run_type));
  if (reference_example && reference_example.length > 0)
    conditions.push({
      ...{ kind: 'column', column: 'reference_example_id' },
      test: { is: 'among', values: reference_example.map((text) => ({ type: 'text', text })) },
    });
  if (typeof error === 'boolean')
    conditions.push({
      ...{ kind: 'column', column: 'error' },
      test: { is: error ? 'unequal' : 'equal', value: null },
    });
  const isRoot = given.is_root ?? (execution_order ? true : undefined);
  if (isRoot !== undefined)
    conditions.push({
      ...{ kind: 'column', column: 'is_root' },
      test: { is: 'equal', value: { type: 'flag', flag: isRoot } },
    });
  if (query) conditions.push({ kind: 'search', text: query });
  for (const filter of [given.filter, given.search_filter]) if (filter) conditions.push(filter);
  return conditions;
}

function hasText(column: ScalarColumn, text: string): Filter {
  return { kind: 'column', column, test: { is: 'equal', value: { type: 'text', text } } };
}

export const MAX_WINDOW_DAYS = 400;
const DAY_MS = 24 * 3600 * 1000;

/** Without an end it lasts, and the longest one is a day longer: the clock of a caller is not ours. */
function toWindow({ start_time: from, end_time: to }: GivenSelection, nowMs: number): RunWindow {
  const endMs = to ? Date.parse(to) : nowMs;
  const longestMs = (MAX_WINDOW_DAYS + (to ? 0 : 1)) * DAY_MS;
  if (from && endMs - Date.parse(from) > longestMs) {
    const msg = `The window has more than ${MAX_WINDOW_DAYS} days: set end_time, or a later start_time`;
    throw new InvalidInput([{ loc: ['body', 'start_time'], msg, type: 'value_error' }]);
  }
  const earliest = new Date(Math.max(0, endMs - MAX_WINDOW_DAYS * DAY_MS)).toISOString();
  return { from: from ?? earliest, ...(to ? { to } : {}) };
}
