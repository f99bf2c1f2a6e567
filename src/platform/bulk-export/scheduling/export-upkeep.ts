// What happens to exports without a request or a worker that says so: attempts whose worker is gone, or that do not end, are ended, exports
// end with their time, and schedules make the next export. Every process may do it, and several at once: each change is decided under
// the lock of its workspace.
import type { Log } from '../../../base/log.ts';
import type { Database, Store, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { insertExport } from '../exports/export-creation.ts';
import { EXPORT_COLUMNS } from '../exports/export-reading.ts';
import { dueAt, intervalFrom } from '../exports/export-window.ts';
import { addMs, type Clock } from './clock.ts';
import { stopExport } from './export-stopping.ts';
import { endAttempt, type RetryRules } from './run-ending.ts';
import { giveUpLeftUploads } from './given-up-uploads.ts';
import { createWorkspaceWrites, type WorkspaceWrites } from './workspace-writes.ts';

export type UpkeepRules = RetryRules & {
  /** Of one attempt of a run, and of an export from the beginning of its first run. */
  readonly runTimeoutMs: number;
  readonly exportTimeoutMs: number;
};

export type UpkeepParts = {
  readonly store: Store;
  readonly clock: Clock;
  readonly rules: UpkeepRules;
  readonly log: Log;
  /** Whether it is known that the process has ended; of those of which nothing is known, leases expire. */
  isDead?(worker: string): boolean;
};

/** What was done, for the log. */
export type Upkept = { readonly interrupted: number; readonly timedOut: number; readonly scheduled: number };
type Pass = UpkeepParts & { readonly writes: WorkspaceWrites };

/** What cannot be done for one workspace is done for the others, and for it by the next pass. Throws where the database is away. */
export async function keepExports(parts: UpkeepParts): Promise<Upkept> {
  const pass = { ...parts, writes: createWorkspaceWrites(parts) };
  try {
    const done = {
      interrupted: await endLostAttempts(pass),
      timedOut: await endLateExports(pass),
      scheduled: await makeDueExports(pass),
    };
    await giveUpLeftUploads(pass);
    return done;
  } finally {
    pass.writes.report();
  }
}

/** Of one pass: the next one goes on. */
const MAX_AT_ONCE = 100;

/** A worker ends an attempt itself when its time is over. One that does not within this is ended without it. */
const OVERTIME_MS = 60_000;
export const RUN_TIMED_OUT = 'The run timed out: narrow its dates, add a filter or export fewer fields';

type Lost = {
  readonly id: string;
  readonly workspace_id: string;
  readonly lease_id: string;
  readonly is_late: boolean;
  readonly is_dead: boolean;
};

async function endLostAttempts({ store, writes, clock, rules, isDead }: Pass): Promise<number> {
  const now = await clock(store.db);
  const dead = isDead === undefined ? [] : (await listWorkers(store.db)).filter((one) => isDead(one));
  const lateSince = addMs(now, -(rules.runTimeoutMs + OVERTIME_MS));
  const { rows } = await sql<Lost>`
    select id, workspace_id, lease_id, attempt_at < ${lateSince} as is_late,
      coalesce(worker = any(${dead}::text[]), false) as is_dead
    from export_runs
    where status = 'RUNNING'
      and (lease_until < ${now} or attempt_at < ${lateSince} or worker = any(${dead}::text[]))
    order by row_number() over (partition by workspace_id order by attempt_at)
    limit ${MAX_AT_ONCE}`.execute(store.db);
  let ended = 0;
  for (const lost of rows) {
    const end = async (trx: Transaction) => endLost(trx, lost, { now: await clock(trx), rules });
    if (await writes.write(lost.workspace_id, end)) ended += 1;
  }
  return ended;
}

async function endLost(
  trx: Transaction,
  { id: runId, workspace_id: workspaceId, lease_id: leaseId, is_late: isLate, is_dead: isDead }: Lost,
  { now, rules }: { readonly now: Date; readonly rules: RetryRules },
): Promise<boolean> {
  if (!isLate && !isDead && !(await isExpired(trx, { runId, leaseId, at: now }))) return false;
  const end = isLate
    ? ({ is: 'failed', isRetryable: true, message: RUN_TIMED_OUT } as const)
    : ({ is: 'interrupted' } as const);
  return (await endAttempt(trx, { workspaceId, runId, leaseId, now, rules }, end)) !== undefined;
}

/** Of the attempts at work. */
async function listWorkers(db: Database): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('export_runs')
    .select('worker')
    .distinct()
    .where('status', '=', 'RUNNING')
    .where('worker', 'is not', null)
    .execute();
  return rows.flatMap(({ worker }) => worker ?? []);
}

/** It may have been renewed meanwhile. */
async function isExpired(
  trx: Transaction,
  { runId, leaseId, at }: { readonly runId: string; readonly leaseId: string; readonly at: Date },
): Promise<boolean> {
  const row = await trx
    .selectFrom('export_runs')
    .select('id')
    .where('id', '=', runId)
    .where('lease_id', '=', leaseId)
    .where('lease_until', '<', at)
    .forUpdate()
    .executeTakeFirst();
  return row !== undefined;
}

async function endLateExports({ store, writes, clock, rules }: Pass): Promise<number> {
  const late = await findIds(
    store.db,
    sql`status = 'RUNNING' and started_at < ${addMs(await clock(store.db), -rules.exportTimeoutMs)}`,
  );
  let ended = 0;
  for (const { id: exportId, workspace_id: workspaceId, destination_id: destinationId } of late) {
    const isEnded = await writes.write(workspaceId, async (trx) => {
      const found = await trx
        .selectFrom('exports')
        .select('status')
        .where('id', '=', exportId)
        .executeTakeFirst();
      if (found === undefined) return false;
      const of = { workspaceId, exportId, destinationId, status: found.status };
      return stopExport(trx, { ...of, now: await clock(trx), move: 'time_out' });
    });
    if (isEnded) ended += 1;
  }
  return ended;
}

/** Of each workspace one after another: none waits for another that has more than can be done at once. */
async function findIds(db: Database, condition: ReturnType<typeof sql>) {
  const { rows } = await sql<{ id: string; workspace_id: string; destination_id: string }>`
    select id, workspace_id, destination_id from exports where ${condition}
    order by row_number() over (partition by workspace_id order by next_due_at, created_at), created_at
    limit ${MAX_AT_ONCE}`.execute(db);
  return rows;
}

/** One of each schedule: one that has several to make gets the others in the next passes. */
async function makeDueExports({ store, writes, clock }: Pass): Promise<number> {
  const due = await findIds(
    store.db,
    sql`status = 'INTERVALSCHEDULED' and next_due_at <= ${await clock(store.db)}`,
  );
  let made = 0;
  for (const { id, workspace_id: workspaceId } of due)
    if (await writes.write(workspaceId, (trx) => makeNext(trx, { id, workspaceId, clock }))) made += 1;
  return made;
}

type Scheduled = { readonly id: string; readonly workspaceId: string; readonly clock: Clock };

async function makeNext(trx: Transaction, { id, workspaceId, clock }: Scheduled): Promise<boolean> {
  const now = await clock(trx);
  const schedule = await trx
    .selectFrom('exports')
    .select([...EXPORT_COLUMNS, 'next_start'])
    .where('id', '=', id)
    .where('status', '=', 'INTERVALSCHEDULED')
    .where('next_due_at', '<=', now)
    .executeTakeFirst();
  if (schedule === undefined || schedule.next_start === null || schedule.interval_hours === null)
    return false;
  const { next_start: from, interval_hours: hours } = schedule;
  const window = intervalFrom(from, hours);
  await insertExport(trx, {
    ...{ workspaceId, now, window, source_id: id, destination_id: schedule.destination_id },
    ...{ session_id: schedule.session_id, filter: schedule.filter, export_fields: schedule.export_fields },
    ...{ format_version: schedule.format_version, compression: schedule.compression },
  });
  await trx
    .updateTable('exports')
    .set({ next_start: window.to, next_due_at: dueAt(intervalFrom(window.to, hours)), updated_at: now })
    .where('id', '=', id)
    .execute();
  return true;
}
