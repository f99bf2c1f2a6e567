// Pages of whole runs for exports: the text of a filter becomes a filter, and a long search is done in slices of time, so that each of
// its statements ends soon.
import { InvalidInput } from '../../../base/domain-error.ts';
import type { Database } from '../../store/database.ts';
import { endWithSignal } from '../../store/postgres/statement-ending.ts';
import { type PagedRun, type RunPage, type RunPageQuery, type RunPages, toCursor } from '../contract.ts';
import { hasFeedback, readAllFeedbackStats } from '../feedback/feedback-stats.ts';
import type { Filter } from '../filter/filter.ts';
import { parseFilter } from '../filter/parser.ts';
import { unpackWithin } from '../runs/payload.ts';
import type { TraceStore } from '../trace-store.ts';

/** Of one statement that looks for runs that fulfil a filter. */
const SLICE_MS = 3_600_000;

export function createRunPages(store: Pick<TraceStore, 'readRunPage'>): RunPages {
  return {
    async readPage(db, query, ending) {
      const filter = query.filter === undefined ? undefined : toFilter(query.filter);
      const window = sliceOf(query);
      const read = async (trx: Database): Promise<readonly PagedRun[]> => {
        const { filter: _, ...rest } = query;
        const given = filter === undefined ? {} : { filter };
        const found = await store.readRunPage(trx, { ...rest, ...given, window });
        return query.columns.has('feedback_stats') ? await addFeedback(trx, query.workspaceId, found) : found;
      };
      const runs = await readSnapshot(db, (trx) =>
        ending === undefined ? read(trx) : endWithSignal(trx, ending, () => read(trx)),
      );
      return { runs, ...nextOf(query, window, runs) };
    },
    unpack: unpackWithin,
  };
}

function readSnapshot<T>(db: Database, work: (trx: Database) => Promise<T>): Promise<T> {
  return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(work);
}

/** The key order makes pages of all runs cheap wherever they are. */
function sliceOf({ window: { from, to }, filter, after }: RunPageQuery): RunPageQuery['window'] {
  const startMs = Math.max(Date.parse(from), after === undefined ? 0 : Date.parse(after.start_time));
  const isLast = filter === undefined || startMs + SLICE_MS >= Date.parse(to);
  return { from, to: isLast ? to : new Date(startMs + SLICE_MS).toISOString() };
}

function nextOf(
  { window }: RunPageQuery,
  slice: RunPageQuery['window'],
  runs: readonly PagedRun[],
): Pick<RunPage, 'next'> {
  const last = runs.at(-1);
  if (last !== undefined) return { next: { window, after: toCursor(last) } };
  return slice.to === window.to ? {} : { next: { window: { from: slice.to, to: window.to } } };
}

function toFilter(text: string): Filter {
  const parsed = parseFilter(text);
  if (parsed.ok) return parsed.filter;
  const issues = parsed.issues.map(({ at, msg }) => `${msg} (character ${at + 1})`);
  throw new InvalidInput([{ loc: ['filter'], msg: issues.join('; '), type: 'value_error' }]);
}

async function addFeedback(
  trx: Database,
  workspaceId: string,
  runs: readonly PagedRun[],
): Promise<readonly PagedRun[]> {
  if (runs.length === 0 || !(await hasFeedback(trx, workspaceId))) return runs;
  const ids = runs.map(({ id }) => id);
  const stats = await readAllFeedbackStats(trx, workspaceId, ids);
  return runs.map((run) => {
    const own = stats.get(run.id);
    return own === undefined ? run : { ...run, feedback_stats: JSON.stringify(own) };
  });
}
