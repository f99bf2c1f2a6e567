// Ends the statements of a transaction with a signal. A statement that nobody waits for any more runs on until its time limit, and its
// connection is missing meanwhile.
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../database.ts';
import { sql } from '../sql.ts';

export type StatementEnding = {
  readonly signal: AbortSignal;
  /** Of a pool whose connections are not those of the transaction, all of which may be in use. */
  readonly cancelBy: Database;
};

/** One that comes between two statements of the transaction has no effect. */
const REPEAT_MS = 500;

/** `work` calls statements of `trx`: once the signal is aborted, the one that runs is cancelled, and rejects. */
export async function endWithSignal<T>(
  trx: Database,
  { signal, cancelBy }: StatementEnding,
  work: () => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const backend = await findBackend(trx);
  const ended = new AbortController();
  let cancelling: Promise<void> | undefined;
  const cancel = (): void => void (cancelling ??= cancelUntil(ended.signal, backend, cancelBy));
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  try {
    return await work();
  } finally {
    signal.removeEventListener('abort', cancel);
    ended.abort();
    // Before that, the connection may not be given to anybody whose statement would be cancelled.
    await cancelling;
  }
}

/** Of the server: a pooler in between has numbers of its own for its clients. */
async function findBackend(trx: Database): Promise<number> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
  const [row] = rows;
  if (row === undefined) throw new Error('the database did not say which process serves the connection');
  return row.pid;
}

async function cancelUntil(ended: AbortSignal, backend: number, cancelBy: Database): Promise<void> {
  while (!ended.aborted) {
    // Where the database is away, the statement ends with its connection.
    await sql`select pg_cancel_backend(${backend})`.execute(cancelBy).catch(() => undefined);
    await delay(REPEAT_MS, undefined, { signal: ended }).catch(() => undefined);
  }
}
