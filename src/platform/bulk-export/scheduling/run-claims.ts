// A worker takes the next run that may begin. Limits are counted under the lock of the workspace, in the transaction that begins the run:
// several workers never pass them together.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database, Store, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { ExportField } from '../files/export-columns.ts';
import type { DestinationConfig } from '../destinations/destination-schema.ts';
import type { Compression, FormatVersion } from '../exports/export-rows.ts';
import { addMs, type Clock } from './clock.ts';
import { tryLockExportsOf } from './workspace-turn.ts';

export type AdmissionLimits = {
  /** Exports of a workspace that run at once, and runs of an export. */
  readonly maxExports: number;
  readonly maxRuns: number;
};

/** A worker that has not renewed a lease for so long has died, by the clock of the database. */
export const LEASE_MS = 20_000;

export type ClaimedRun = {
  readonly leaseId: string;
  readonly workspaceId: string;
  readonly exportId: string;
  readonly runId: string;
  readonly projectId: string;
  readonly window: { readonly from: string; readonly to: string };
  readonly filter: string | null;
  readonly fields: readonly ExportField[] | null;
  readonly compression: Compression;
  readonly formatVersion: FormatVersion;
  readonly retryNumber: number;
  /** Of its attempts before. */
  readonly interruptions: number;
  readonly destinationId: string;
  readonly destinationConfig: DestinationConfig;
  /** 0: the credentials of this installation. */
  readonly credentialsVersion: number;
};

/** Of one look for a run. Others look at other workspaces meanwhile. */
const MAX_WORKSPACES = 20;

type Claiming = {
  readonly clock: Clock;
  readonly limits: AdmissionLimits;
  /** The process that takes it. */
  readonly worker?: string | undefined;
};

/** Before each look, where somebody has the lock of a workspace with a run that may begin: it is held for moments. */
const PAUSES_MS = [0, 20, 80];

/** Undefined: no run may begin now. */
export async function claimRun(store: Store, claiming: Claiming): Promise<ClaimedRun | undefined> {
  for (const pauseMs of PAUSES_MS) {
    await delay(pauseMs);
    const claimed = await claimUnlocked(store, claiming);
    if (claimed !== 'locked') return claimed;
  }
  return undefined;
}

/** Nobody waits for the lock of a workspace: runs of others would wait too. `locked`: no run may begin elsewhere. */
async function claimUnlocked(store: Store, claiming: Claiming): Promise<ClaimedRun | 'locked' | undefined> {
  const { clock, limits, worker = null } = claiming;
  let isLocked = false;
  const candidates = await findWorkspaces(store.db, await clock(store.db), limits);
  for (const { workspace_id: workspaceId } of candidates) {
    const claimed = await store.write(async (trx) => {
      if (!(await tryLockExportsOf(trx, workspaceId))) {
        isLocked = true;
        return undefined;
      }
      const now = await clock(trx);
      const found = await findRun(trx, { workspaceId, now, limits });
      return found && begin(trx, found, { now, worker });
    });
    if (claimed !== undefined) return claimed;
  }
  return isLocked ? 'locked' : undefined;
}

/** Whether a workspace has a run that may begin, and none at work. */
export async function hasWaitingWorkspace(
  { db }: Pick<Store, 'db'>,
  { clock, limits }: Pick<Claiming, 'clock' | 'limits'>,
): Promise<boolean> {
  const [first] = await findWorkspaces(db, await clock(db), limits);
  return first?.at_work === 0;
}

type Candidate = {
  readonly workspace_id: string;
  /** Of its runs. */
  readonly at_work: number;
};

/**
 * Where a run may begin, before any lock; those first that have the fewest at work, and of them those whose last turn was longest ago: a
 * worker with few places would otherwise give all of them to the oldest exports. Runs that cannot begin are not read, however many there
 * are: an export that waits has all of its runs due.
 */
async function findWorkspaces(
  db: Database,
  now: Date,
  { maxExports, maxRuns }: AdmissionLimits,
): Promise<readonly Candidate[]> {
  const { rows } = await sql<Candidate>`
    with working as (
      select workspace_id, export_id, count(*) as runs from export_runs where status = 'RUNNING' group by 1, 2
    ), busy as (
      select workspace_id, count(*) as exports from exports where status = 'RUNNING' group by 1
    ), waiting as (
      select e.workspace_id, min(e.created_at) as since
      from exports e
      left join working w on w.export_id = e.id
      left join busy b on b.workspace_id = e.workspace_id
      left join lateral (
        select true as is_due from export_runs x
        where e.status = 'RUNNING' and coalesce(w.runs, 0) < ${maxRuns}
          and x.workspace_id = e.workspace_id and x.export_id = e.id and x.status = 'CREATED' and x.due_at <= ${now}
        order by x.window_start limit 1
      ) r on true
      where e.status in ('CREATED', 'RUNNING')
        and (r.is_due or (e.status = 'CREATED' and coalesce(b.exports, 0) < ${maxExports}))
      group by 1
    )
    select workspace_id, (select coalesce(sum(w.runs), 0) from working w where w.workspace_id = q.workspace_id)::int as at_work
    from waiting q
    order by at_work,
      (select max(e.updated_at) from exports e
        where e.workspace_id = q.workspace_id and e.status not in ('CREATED', 'INTERVALSCHEDULED')) nulls first,
      since
    limit ${MAX_WORKSPACES}`.execute(db);
  return rows;
}

type FoundRun = {
  readonly id: string;
  readonly workspace_id: string;
  readonly export_id: string;
  readonly destination_id: string;
  readonly session_id: string;
  readonly window_start: string;
  readonly window_end: string;
  readonly filter: string | null;
  readonly export_fields: readonly ExportField[] | null;
  readonly compression: Compression;
  readonly format_version: FormatVersion;
  readonly retry_number: number;
  readonly interruptions: number;
  readonly credentials_version: number | null;
};

/** Of the exports with the fewest runs at work the oldest, and of its runs the earliest day. */
async function findRun(
  trx: Transaction,
  where: { readonly workspaceId: string; readonly now: Date; readonly limits: AdmissionLimits },
): Promise<FoundRun | undefined> {
  const { workspaceId, now, limits } = where;
  const { rows } = await sql<FoundRun>`
    select r.id, r.workspace_id, r.export_id, r.destination_id, e.session_id, r.window_start, r.window_end,
      e.filter, e.export_fields, e.compression, e.format_version, r.retry_number, r.interruptions,
      r.credentials_version
    from exports e
    cross join lateral (
      select count(*) as runs from export_runs x where x.export_id = e.id and x.status = 'RUNNING'
    ) w
    cross join lateral (
      select * from export_runs x
      where x.workspace_id = e.workspace_id and x.export_id = e.id and x.status = 'CREATED' and x.due_at <= ${now}
      order by x.window_start limit 1
    ) r
    where e.workspace_id = ${workspaceId} and w.runs < ${limits.maxRuns}
      and (e.status = 'RUNNING' or (e.status = 'CREATED' and ${limits.maxExports} >
        (select count(*) from exports y where y.workspace_id = ${workspaceId} and y.status = 'RUNNING')))
    order by w.runs, e.created_at, e.id
    limit 1`.execute(trx);
  return rows[0];
}

async function begin(
  trx: Transaction,
  found: FoundRun,
  { now, worker }: { readonly now: Date; readonly worker: string | null },
): Promise<ClaimedRun> {
  const { id: runId, workspace_id: workspaceId, export_id: exportId, destination_id: destinationId } = found;
  // Locked against new credentials: whoever stores them removes the version before, unless a run holds it.
  const destination = await trx
    .selectFrom('export_destinations')
    .select(['config', 'credentials_version'])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', destinationId)
    .forShare()
    .executeTakeFirstOrThrow();
  const credentialsVersion = found.credentials_version ?? destination.credentials_version ?? 0;
  const leaseId = randomUUID();
  await trx
    .updateTable('export_runs')
    .set({
      status: 'RUNNING',
      ...{ credentials_version: credentialsVersion, worker },
      ...{
        lease_id: leaseId,
        lease_until: addMs(now, LEASE_MS),
        attempt_at: now,
        updated_at: now,
        rows_read: null,
      },
    })
    .where('id', '=', runId)
    .execute();
  await trx
    .updateTable('exports')
    .set({ status: 'RUNNING', started_at: sql<Date>`coalesce(started_at, ${now})`, updated_at: now })
    .where('id', '=', exportId)
    .execute();
  return {
    ...{
      leaseId,
      workspaceId,
      exportId,
      runId,
      projectId: found.session_id,
      destinationId,
      credentialsVersion,
    },
    window: { from: found.window_start, to: found.window_end },
    ...{ filter: found.filter, fields: found.export_fields, compression: found.compression },
    ...{ formatVersion: found.format_version, retryNumber: found.retry_number },
    interruptions: found.interruptions,
    destinationConfig: JSON.parse(destination.config) as DestinationConfig,
  };
}
