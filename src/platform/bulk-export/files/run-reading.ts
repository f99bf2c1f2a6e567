// The groups of rows of a run, read page by page as they are asked for.
import { InvalidInput } from '../../../base/domain-error.ts';
import { codeOf } from '../../store/database-error.ts';
import { type RunCursor, type RunPage, type RunPageQuery, RunTooLarge } from '../../traces/contract.ts';
import { pageColumns } from './column-values.ts';
import type { ExportColumn } from './export-columns.ts';
import { ExportFailure } from './export-failure.ts';
import type { ExportLimits } from './export-limits.ts';
import type { ExportMeans, RunExportTask } from './export-task.ts';
import { type RowGroup, RowGroups } from './row-group.ts';
import { tooLarge } from './run-payloads.ts';

type Reading = {
  readonly task: RunExportTask;
  readonly columns: readonly ExportColumn[];
  readonly means: Pick<ExportMeans, 'traces' | 'db' | 'cancelBy' | 'signal'>;
  readonly limits: ExportLimits;
  /** The last run that the files have. */
  readonly after: RunCursor | undefined;
};

/** At each moment two pages and one group are held, or one page that is large. Throws the reason of the signal as soon as that is aborted. */
export async function* readGroups(reading: Reading): AsyncGenerator<RowGroup> {
  const { task, columns, means, limits } = reading;
  const { unpack } = means.traces;
  const groups = new RowGroups({ columns, project: task, unpack, limits });
  const begun = toQuery(reading);
  const { after } = reading;
  let ahead: Promise<RunPage> | undefined = readPage(after ? { ...begun, after } : begun, means);
  while (ahead !== undefined) {
    const page: RunPage = await ahead;
    const read = (): Promise<RunPage> | undefined => page.next && readPage({ ...begun, ...page.next }, means);
    // While these runs are written, and where they do not have so many bytes that the next ones have to wait for memory.
    const isSmall: boolean = page.runs.length === limits.pageRows;
    ahead = isSmall ? read() : undefined;
    // Who does not come back for it needs no reason.
    ahead?.catch(() => undefined);
    yield* groups.add(page.runs);
    if (!isSmall) ahead = read();
  }
  yield* groups.end();
}

function toQuery({ task, columns, limits }: Reading): RunPageQuery {
  const { workspaceId, projectId, window, filter } = task;
  return {
    ...{ workspaceId, projectId, window, columns: pageColumns(columns) },
    ...{ maxRows: limits.pageRows, maxBytes: limits.pageBytes, maxRunBytes: limits.runBytes },
    ...(filter === undefined ? {} : { filter }),
  };
}

/** Its statements are cancelled where nobody waits for them any more; that is not waited for. */
async function readPage(
  query: RunPageQuery,
  { traces, db, cancelBy, signal }: Reading['means'],
): Promise<RunPage> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([traces.readPage(db, query, { signal, cancelBy }), aborted.promise]);
  } catch (error) {
    signal.throwIfAborted();
    throw toFailure(error, query);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** query_canceled, by the statement timeout. */
const CANCELED = '57014';

function toFailure(cause: unknown, { maxRunBytes = 0 }: RunPageQuery): unknown {
  if (cause instanceof RunTooLarge)
    return tooLarge({ id: cause.runId, field: cause.field, maxBytes: maxRunBytes }, cause);
  if (cause instanceof InvalidInput)
    return new ExportFailure('serialization', 'The filter of the export is not valid', { cause });
  if (!(cause instanceof Error) || codeOf(cause.cause) !== CANCELED) return cause;
  const message = 'A page of trace runs was not read in time: export a shorter time, or without the filter';
  return new ExportFailure('timeout', message, { cause });
}
