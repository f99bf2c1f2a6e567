// What boxes asked for themselves: to be stopped after some time without traffic, to be deleted some time after they stopped. By
// the clock of the database.
import { z } from '../../base/schema.ts';
import { defineJob } from '../store/job.ts';
import { sql } from '../store/sql.ts';
import type { Store } from '../store/database.ts';
import { announce, moveBox } from './box-moves.ts';

/** Rows of one transaction. */
const BATCH = 100;
const TRANSITION_DAYS = 30;

export const expireBoxes = defineJob({
  name: 'expire-sandboxes',
  data: z.strictObject({}),
  retries: 0,
  delaySeconds: 1,
  timeoutSeconds: 55,
  schedule: { everyMinutes: 1, data: {} },
  async run(_, { store, log }) {
    const stopped = await stopIdle(store);
    const deleted = await deleteStopped(store);
    await store.db
      .deleteFrom('box_transitions')
      .where('at', '<', sql<Date>`now() - make_interval(days => ${TRANSITION_DAYS})`)
      .execute();
    if (stopped + deleted > 0) log.info({ stopped, deleted }, 'sandboxes expired');
  },
});

async function stopIdle(store: Pick<Store, 'write'>): Promise<number> {
  return inBatches(store, async (trx) => {
    const idle = await trx
      .updateTable('boxes')
      .set({ desired: 'stopped', desired_reason: 'idle' })
      .where('id', 'in', (query) =>
        query
          .selectFrom('boxes')
          .select('id')
          .where('status', '=', 'ready')
          .where('desired', '=', 'running')
          .where('idle_ttl_seconds', '>', 0)
          .where(sql<boolean>`active_at < now() - make_interval(secs => idle_ttl_seconds)`)
          .limit(BATCH)
          .forNoKeyUpdate()
          .skipLocked(),
      )
      .returning('id')
      .execute();
    for (const { id } of idle) await announce(trx, id);
    return idle.length;
  });
}

async function deleteStopped(store: Pick<Store, 'write'>): Promise<number> {
  return inBatches(store, async (trx) => {
    const expired = await trx
      .selectFrom('boxes')
      .select(['id', 'workspace_id'])
      .where('status', '=', 'stopped')
      .where('delete_after_stop_seconds', '>', 0)
      .where(sql<boolean>`stopped_at < now() - make_interval(secs => delete_after_stop_seconds)`)
      .limit(BATCH)
      .forNoKeyUpdate()
      .skipLocked()
      .execute();
    for (const { id, workspace_id: workspaceId } of expired)
      await moveBox(trx, { id, workspaceId, from: 'stopped', to: 'deleting', reason: 'expired' });
    return expired.length;
  });
}

async function inBatches(
  store: Pick<Store, 'write'>,
  work: (trx: Parameters<Parameters<Store['write']>[0]>[0]) => Promise<number>,
): Promise<number> {
  for (let all = 0; ; ) {
    const count = await store.write(work);
    all += count;
    if (count < BATCH) return all;
  }
}
