// The result of a run for a client that waits: spaces while it runs, then one JSON object, with status 200 in any case.
import { EndedEarly } from '../../../base/http/http-response.ts';
import { RequestError } from '../../../base/http/request-body.ts';
import { type Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { defineRead } from '../../store/statement.ts';
import type { RunStreams } from '../streams/run-streams.ts';
import type { RunStatus } from './run-rows.ts';

export type Waiting = {
  readonly streams: Pick<RunStreams, 'ended'>;
  readonly runId: string;
  readonly db: Reader;
  /** Of the call. */
  readonly signal: AbortSignal;
  /** The client left before the run had ended. */
  onLeft?(): void;
  readonly spaceMs?: number;
};

/** Proxies and clients give up on a response that is silent. */
const SPACE_MS = 5_000;
const SPACE: Uint8Array = Buffer.from('\n');

/** Rejects when the process shuts down before the run has ended: the connection is cut, and the client joins the run again. */
export async function* waitForResult(waiting: Waiting): AsyncGenerator<Uint8Array, void, undefined> {
  const { streams, runId, db, signal, onLeft, spaceMs = SPACE_MS } = waiting;
  const ended = streams.ended(runId, signal).then((): true => true);
  yield SPACE;
  while (!(await within(ended, spaceMs))) yield SPACE;
  const [row] = await findResult(db, { runId });
  if (signal.aborted && (row === undefined || isUnended(row.status))) {
    if (!isLeft(signal)) throw new EndedEarly('the process is shutting down');
    onLeft?.();
    return;
  }
  yield Buffer.from(toResult(row));
}

/** Whether it has ended by then. */
async function within(ended: Promise<true>, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(resolve, ms, false);
  const isEnded = await Promise.race([ended, promise]);
  clearTimeout(timer);
  return isEnded;
}

/** By its connection, and not because the process shuts down. */
function isLeft({ reason }: AbortSignal): boolean {
  return reason instanceof RequestError && reason.kind === 'client_gone';
}

function isUnended(status: RunStatus): boolean {
  return status === 'pending' || status === 'running';
}

type Result = { readonly status: RunStatus; readonly output: string | null; readonly values: string | null };

const REMOVED = JSON.stringify({
  __error__: { error: 'RunRemoved', message: 'The run was removed before it had ended' },
});

/** An object, also where there is nothing: clients look for `__error__` in it. */
function toResult(row: Result | undefined): string {
  if (row === undefined) return REMOVED;
  const { status, output, values } = row;
  if (status === 'error' || status === 'timeout') return `{"__error__":${output ?? '{}'}}`;
  const found = output ?? values ?? '{}';
  return found === 'null' ? '{}' : found;
}

const findResult = defineRead('find-agent-run-result', (db, { runId }: { readonly runId: string }) =>
  db
    .selectFrom('agent_runs as r')
    .innerJoin('agent_threads as t', 't.thread_id', 'r.thread_id')
    .select(['r.status', sql<string | null>`r.output::text`.as('output')])
    .select(sql<string | null>`case when r.output is null then t.values::text end`.as('values'))
    .where('r.run_id', '=', runId)
    .unionAll((query) =>
      query
        .selectFrom('agent_run_results')
        .select(['status', sql<string | null>`output::text`.as('output')])
        .select(sql<string | null>`null::text`.as('values'))
        .where('run_id', '=', runId),
    )
    .compile(),
);
