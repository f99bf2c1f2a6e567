// Uploads that runs have left and that could not be aborted for an hour: they are left to the rules of their buckets, and the credentials that
// were kept for them go.
import type { Log } from '../../../base/log.ts';
import type { Store, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { addMs, type Clock } from './clock.ts';
import { releaseCredentials } from './held-credentials.ts';
import { LAST_MS } from './left-uploads.ts';

/** Of one pass: the next one goes on. */
const MAX_AT_ONCE = 100;

const GIVEN_UP =
  'an upload that a run has left was not aborted within an hour and is given up: a rule of the bucket for incomplete uploads removes it';

type GivenUp = {
  readonly id: string;
  readonly workspace_id: string;
  readonly export_id: string;
  readonly destination_id: string;
};

export async function giveUpLeftUploads({
  store,
  clock,
  log,
}: {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}): Promise<void> {
  const before = addMs(await clock(store.db), -LAST_MS);
  const givenUp = await store.write(async (trx) => {
    const found = await forgetLeft(trx, before);
    for (const id of new Set(found.map((one) => one.destination_id))) await releaseCredentials(trx, id);
    return found;
  });
  for (const { id: run, workspace_id: workspace, export_id: exportId } of givenUp)
    log.warn({ workspace, export: exportId, run }, GIVEN_UP);
}

/** Of runs that ended before a time. */
async function forgetLeft(trx: Transaction, before: Date): Promise<readonly GivenUp[]> {
  const { rows } = await sql<GivenUp>`
    update export_runs r set progress = r.progress - 'pendingUpload'
    from (
      select id from export_runs
      where status in ('FAILED', 'CANCELLED', 'TIMEDOUT') and progress -> 'pendingUpload' is not null and finished_at < ${before}
      order by finished_at limit ${MAX_AT_ONCE}
      for update skip locked
    ) late
    where r.id = late.id
    returning r.id, r.workspace_id, r.export_id, r.destination_id`.execute(trx);
  return rows;
}
