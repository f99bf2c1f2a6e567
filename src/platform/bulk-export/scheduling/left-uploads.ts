// Uploads that runs have left which nobody tries again: their worker was killed, or did not end in time. A run that is tried again sees to
// its own.
import type { Database, Store, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { DestinationConfig } from '../destinations/destination-schema.ts';
import type { PendingUpload, RunProgress } from '../files/run-progress.ts';
import { addMs, type Clock } from './clock.ts';

/** The worker of the run aborts the upload itself, if it lives. */
const SETTLE_MS = 15_000;
const RETRY_MS = 60_000;
/** Then the upload is given up. */
export const LAST_MS = 3_600_000;

/** Of rows of runs by this name. */
export function hasLeftUpload(row: 'r') {
  const name = (column: string) => sql.ref(`${row}.${column}`);
  return sql<boolean>`(${name('status')} in ('FAILED', 'CANCELLED', 'TIMEDOUT')
    and ${name('progress')} -> 'pendingUpload' is not null)`;
}

export type LeftUpload = {
  readonly workspaceId: string;
  readonly exportId: string;
  readonly runId: string;
  readonly destinationId: string;
  readonly destinationConfig: DestinationConfig;
  readonly credentialsVersion: number;
  readonly pending: PendingUpload;
};

/** Undefined: there is none. One that is not settled is found again after a while. */
export async function claimLeftUpload(store: Store, clock: Clock): Promise<LeftUpload | undefined> {
  return store.write(async (trx) => {
    const now = await clock(trx);
    const row = await findLeft(trx, now);
    if (row === undefined) return undefined;
    await trx
      .updateTable('export_runs')
      .set({ due_at: addMs(now, RETRY_MS) })
      .where('id', '=', row.id)
      .execute();
    const { pendingUpload: pending } = row.progress;
    return pending && { ...toLeft(row), pending };
  });
}

type Row = {
  readonly id: string;
  readonly workspace_id: string;
  readonly export_id: string;
  readonly destination_id: string;
  readonly config: string;
  readonly credentials_version: number | null;
  readonly progress: RunProgress;
};

async function findLeft(trx: Transaction, now: Date): Promise<Row | undefined> {
  const { rows } = await sql<Row>`
    select r.id, r.workspace_id, r.export_id, r.destination_id, d.config, r.credentials_version, r.progress
    from export_runs r
    join export_destinations d on d.id = r.destination_id
    where r.status in ('FAILED', 'CANCELLED', 'TIMEDOUT') and r.progress -> 'pendingUpload' is not null
      and r.finished_at between ${addMs(now, -LAST_MS)} and ${addMs(now, -SETTLE_MS)} and r.due_at <= ${now}
    order by r.finished_at limit 1
    for update of r skip locked`.execute(trx);
  return rows[0];
}

function toLeft(row: Row): Omit<LeftUpload, 'pending'> {
  return {
    ...{
      workspaceId: row.workspace_id,
      exportId: row.export_id,
      runId: row.id,
      destinationId: row.destination_id,
    },
    destinationConfig: JSON.parse(row.config) as DestinationConfig,
    credentialsVersion: row.credentials_version ?? 0,
  };
}

export async function settleLeftUpload(db: Database, runId: string): Promise<void> {
  await sql`update export_runs set progress = progress - 'pendingUpload' where id = ${runId}`.execute(db);
}
