// A worker takes the next run that may begin. Limits are counted under the lock of the workspace, in the transaction that begins the run:
// several workers never pass them together.
import { randomUUID } from 'node:crypto';
import { DomainError } from '../../../base/domain-error.ts';
import type { Store, Transaction } from '../../store/database.ts';
import { codeOf } from '../../store/database-error.ts';
import { sql } from '../../store/sql.ts';
import type { ExportField } from '../files/export-columns.ts';
import type { DestinationConfig } from '../destinations/destination-schema.ts';
import type { Compression, FormatVersion } from '../exports/export-rows.ts';
import { addMs, type Clock } from './clock.ts';
import { type AdmissionLimits, findWorkspaces } from './waiting-workspaces.ts';
import { lockExportsOf, tryLockExportsOf } from './workspace-turn.ts';

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

type Claiming = {
  readonly clock: Clock;
  readonly limits: AdmissionLimits;
  /** The process that takes it. */
  readonly worker?: string | undefined;
};

/** Undefined: no run may begin now. */
export async function claimRun(store: Store, claiming: Claiming): Promise<ClaimedRun | undefined> {
  const { clock, limits } = claiming;
  const candidates = await findWorkspaces(store.db, await clock(store.db), limits);
  const locked: string[] = [];
  for (const { workspace_id: workspaceId } of candidates) {
    const claimed = await store.write(async (trx) => {
      if (await tryLockExportsOf(trx, workspaceId)) return claimLocked(trx, workspaceId, claiming);
      locked.push(workspaceId);
      return undefined;
    });
    if (claimed !== undefined) return claimed;
  }
  const [first] = locked;
  return first === undefined ? undefined : claimWaiting(store, first, claiming);
}

/** Whoever has the lock of a workspace has it for moments, unless something is wrong. */
const LOCK_MS = 500;
/** lock_not_available */
const NOT_LOCKED = '55P03';

/** The lock is waited for only where no run may begin elsewhere, and not for long: others may wait for this look to end. */
async function claimWaiting(
  store: Store,
  workspaceId: string,
  claiming: Claiming,
): Promise<ClaimedRun | undefined> {
  try {
    return await store.write(async (trx) => {
      await sql`set local lock_timeout = ${sql.lit(LOCK_MS)}`.execute(trx);
      return (await lockExportsOf(trx, workspaceId)) ? claimLocked(trx, workspaceId, claiming) : undefined;
    });
  } catch (error) {
    if (error instanceof DomainError && codeOf(error.cause) === NOT_LOCKED) return undefined;
    throw error;
  }
}

async function claimLocked(
  trx: Transaction,
  workspaceId: string,
  { clock, limits, worker }: Claiming,
): Promise<ClaimedRun | undefined> {
  const now = await clock(trx);
  const found = await findRun(trx, { workspaceId, now, limits });
  return found && begin(trx, found, { now, worker: worker ?? null });
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
