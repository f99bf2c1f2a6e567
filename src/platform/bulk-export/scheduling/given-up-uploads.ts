// Uploads that runs have left and that could not be aborted for an hour: they are left to the rules of their buckets, and the credentials that
// were kept for them go.
import type { Log } from '../../../base/log.ts';
import type { Database, Store, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { addMs, type Clock } from './clock.ts';
import { releaseCredentials } from './held-credentials.ts';
import { LAST_MS } from './left-uploads.ts';
import type { WorkspaceWrites } from './workspace-writes.ts';

/** Of one pass: the next one goes on. */
const MAX_AT_ONCE = 100;

const GIVEN_UP =
  'an upload that a run has left was not aborted within an hour and is given up: a rule of the bucket for incomplete uploads removes it';

type GivenUp = { readonly id: string; readonly export_id: string; readonly destination_id: string };

export async function giveUpLeftUploads({
  store,
  clock,
  log,
  writes,
}: {
  readonly store: Pick<Store, 'db'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly writes: WorkspaceWrites;
}): Promise<void> {
  const before = addMs(await clock(store.db), -LAST_MS);
  for (const workspaceId of await findWorkspaces(store.db, before)) {
    let givenUp: readonly GivenUp[] = [];
    const isDone = await writes.write(workspaceId, async (trx) => {
      givenUp = await forgetLeft(trx, workspaceId, before);
      for (const id of new Set(givenUp.map((one) => one.destination_id))) await releaseCredentials(trx, id);
      return true;
    });
    for (const { id: run, export_id: exportId } of isDone ? givenUp : [])
      log.warn({ workspace: workspaceId, export: exportId, run }, GIVEN_UP);
  }
}

async function findWorkspaces(db: Database, before: Date): Promise<readonly string[]> {
  const { rows } = await sql<{ workspace_id: string }>`
    select distinct workspace_id from export_runs
    where ${isLeftBefore(before)} limit ${MAX_AT_ONCE}`.execute(db);
  return rows.map(({ workspace_id: id }) => id);
}

async function forgetLeft(trx: Transaction, workspaceId: string, before: Date): Promise<readonly GivenUp[]> {
  const { rows } = await sql<GivenUp>`
    update export_runs set progress = progress - 'pendingUpload'
    where id in (
      select id from export_runs where workspace_id = ${workspaceId} and ${isLeftBefore(before)} limit ${MAX_AT_ONCE}
    )
    returning id, export_id, destination_id`.execute(trx);
  return rows;
}

/** Of runs that ended before a time. */
function isLeftBefore(before: Date) {
  return sql<boolean>`(status in ('FAILED', 'CANCELLED', 'TIMEDOUT') and progress -> 'pendingUpload' is not null
    and finished_at < ${before})`;
}
