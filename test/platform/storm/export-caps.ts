// Looks at the tables all the time: whether more exports or runs are at work than may be.
import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, openDatabase } from '../../../src/platform/store/database.ts';
import { sql } from '../../../src/platform/store/sql.ts';

export type Caps = { readonly exports: number; readonly runs: number };
export type CapsWatch = AsyncDisposable & {
  readonly errors: readonly string[];
  /** The most that were seen at once. */
  readonly most: { readonly exports: number; readonly runs: number };
  /** Runs that have ended so far. */
  completed(): Promise<number>;
};

const PAUSE_MS = 20;

export function watchCaps(owner: Connection, caps: Caps): CapsWatch {
  const store = openDatabase({
    connection: { ...owner, application_name: 'caps of a storm' },
    ...{ maxConnections: 2, onError: () => undefined },
  });
  const errors: string[] = [];
  const most = { exports: 0, runs: 0 };
  const stop = new AbortController();
  const look = async (): Promise<void> => {
    const { rows } = await sql<{ readonly exports: number; readonly runs: number | null }>`
      select (select count(*)::int from exports where status = 'RUNNING') as exports,
        (select max(n)::int from (select count(*) as n from export_runs where status = 'RUNNING' group by export_id) r) as runs
    `.execute(store.db);
    const { exports = 0, runs } = rows[0] ?? {};
    most.exports = Math.max(most.exports, exports);
    most.runs = Math.max(most.runs, runs ?? 0);
    if (exports > caps.exports) errors.push(`${exports} exports at once`);
    if ((runs ?? 0) > caps.runs) errors.push(`${runs} runs of one export at once`);
  };
  const watching = (async () => {
    while (!stop.signal.aborted) {
      await look();
      await delay(PAUSE_MS);
    }
  })();
  return {
    ...{ errors, most },
    async completed() {
      const { rows } = await sql<{ readonly n: number }>`
        select count(*)::int as n from export_runs where status = 'COMPLETED'`.execute(store.db);
      return rows[0]?.n ?? 0;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await watching;
      await store.close();
    },
  };
}
