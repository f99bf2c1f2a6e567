// The window of a read of the log. Both its ends are included, and no event can be added to it afterwards: its end has
// passed on the clock of the database, and whoever was writing an event by then has committed. Waits hold no connection.
import { setTimeout } from 'node:timers/promises';
import { DomainError, InvalidInput } from '../../base/domain-error.ts';
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { defineRead } from '../store/statement.ts';
import type { EventFilter } from './cursor.ts';

/** Milliseconds since 1970, both included. */
export type EventWindow = { readonly start: number; readonly end: number };

type Reader = Pick<Database, 'selectFrom'>;

const DAY_MS = 24 * 60 * 60 * 1000;
/** No writer takes this long from its event to its commit. */
const SETTLED_MS = 60 * 60 * 1000;
/** A caller's clock may be so much ahead of the database's. */
const MAX_AHEAD_MS = 10_000;
/** As long as a write waits for the chain. */
const MAX_WRITER_MS = 10_000;
const RETRY_MS = 1_000;
/** The last millisecond of the year 9999. The database can store all times up to it. */
const MAX_MS = Date.UTC(10_000, 0) - 1;

/** Throws InvalidInput for an end that is too far ahead or before the start; rejects with an AbortError when `signal` aborts. */
export async function settleWindow(
  db: Reader,
  filter: Pick<EventFilter, 'organizationId' | 'startTime' | 'endTime'>,
  signal: AbortSignal,
): Promise<EventWindow> {
  const { organizationId, startTime, endTime } = filter;
  if (startTime !== undefined && endTime !== undefined && startTime > endTime) throw endsBeforeStart();
  const now = await readClock(db, organizationId);
  const end = endTime === undefined ? Math.max(now.clockMs, now.newestMs) : clamp(endTime.getTime());
  // Without an end, the events of running writes are newer than all that is returned: a later read has them.
  if (endTime !== undefined && end > now.clockMs - SETTLED_MS)
    await settle(db, organizationId, { end, clockMs: now.clockMs, signal });
  return { start: clamp(startTime?.getTime() ?? end - DAY_MS), end };
}

type Settling = { readonly end: number; readonly clockMs: number; readonly signal: AbortSignal };

async function settle(db: Reader, organizationId: string, settling: Settling): Promise<void> {
  const { end, signal } = settling;
  for (let { clockMs } = settling; clockMs <= end; ) {
    // Also when the clock of the database was set back during the wait.
    if (end - clockMs > MAX_AHEAD_MS) throw tooFarAhead(clockMs);
    await setTimeout(end - clockMs + 1, undefined, { signal });
    ({ clockMs } = await readClock(db, organizationId));
  }
  await db
    .selectFrom(sql`public.audit_settle(${organizationId}, ${new Date(end)})`.as('settled'))
    .select(sql`1`.as('one'))
    .execute();
  await awaitWriter(db, organizationId, signal);
}

/** In a statement after the window was settled: whoever holds the chain later adds a later event. */
async function awaitWriter(db: Reader, organizationId: string, signal: AbortSignal): Promise<void> {
  const found = await db
    .selectFrom(
      sql<{ readonly id: string | null }>`public.audit_writer(${organizationId})`.as<'w'>(sql`w(id)`),
    )
    .select('w.id')
    .executeTakeFirst();
  const writer = found?.id ?? null;
  if (writer === null) return;
  const until = performance.now() + MAX_WRITER_MS;
  for (let waitMs = 2; await isRunning(db, writer); waitMs = Math.min(2 * waitMs, 100)) {
    if (performance.now() > until) throw new DomainError('unavailable', BUSY, RETRY_MS);
    await setTimeout(waitMs, undefined, { signal });
  }
}

const BUSY = 'An event of this window is still being written: try again';

async function isRunning(db: Reader, transaction: string): Promise<boolean> {
  const status = sql<{ readonly status: string | null }>`pg_xact_status(${transaction}::text::xid8)`;
  const found = await db.selectFrom(status.as<'s'>(sql`s(status)`)).select('s.status').executeTakeFirst();
  return found?.status === 'in progress';
}

async function readClock(db: Reader, organizationId: string) {
  const [row] = await selectClock(db, { organizationId });
  return { clockMs: row?.clock.getTime() ?? 0, newestMs: row?.newest.getTime() ?? 0 };
}

const selectClock = defineRead('audit-clock', (db, { organizationId }: { readonly organizationId: string }) =>
  db
    .selectFrom(sql<{ readonly clock: Date }>`clock_timestamp()`.as<'now'>(sql`now(clock)`))
    .leftJoin('audit_heads as head', (join) => join.on('head.organization_id', '=', organizationId))
    .select(['now.clock', sql<Date>`greatest(head.time, 'epoch')`.as('newest')])
    .compile(),
);

function tooFarAhead(clockMs: number): InvalidInput {
  const msg = `Input must be at most ${MAX_AHEAD_MS / 1000} s ahead of the clock of the database, which is at ${new Date(clockMs).toISOString()}`;
  return new InvalidInput([{ loc: ['query', 'end_time'], msg, type: 'value_error' }]);
}

function endsBeforeStart(): InvalidInput {
  const msg = 'Input must not be after end_time';
  return new InvalidInput([{ loc: ['query', 'start_time'], msg, type: 'value_error' }]);
}

function clamp(ms: number): number {
  return Math.min(Math.max(ms, 0), MAX_MS);
}
