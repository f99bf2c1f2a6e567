// What boxes asked for themselves: to be stopped after some time without traffic, to be deleted some time after they stopped. By
// the clock of the database.
import { z } from '../../../base/schema.ts';
import { defineJob, type Job } from '../../store/job.ts';
import { sql } from '../../store/sql.ts';
import type { Store } from '../../store/database.ts';
import { announce, beginDeletion } from '../box-moves.ts';
import { removeExpiredTokens } from '../services/service-tokens.ts';
import { BATCH, inBatches } from './batches.ts';
import { giveUpLostMachines } from './lost-machines.ts';

const TRANSITION_DAYS = 30;

export type ExpirySettings = {
  /** After this time without its lease a machine is lost, and its boxes fail. Undefined: none is. */
  readonly machineLostAfterSeconds: number | undefined;
};

/** `readSettings`: known once the process has started. */
export function createBoxExpiry(readSettings: () => ExpirySettings): Job {
  return defineJob({
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
      await removeExpiredTokens(store.db);
      if (stopped + deleted > 0) log.info({ stopped, deleted }, 'sandboxes expired');
      const { machineLostAfterSeconds } = readSettings();
      if (machineLostAfterSeconds === undefined) return;
      const lost = await giveUpLostMachines(store, machineLostAfterSeconds);
      if (lost.failed + lost.removed > 0)
        log.warn(lost, 'a machine has not been seen for too long: its sandboxes have failed');
    },
  });
}

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
      .select(['id', 'workspace_id', 'machine_id', 'status'])
      .where('status', '=', 'stopped')
      .where('delete_after_stop_seconds', '>', 0)
      .where(sql<boolean>`stopped_at < now() - make_interval(secs => delete_after_stop_seconds)`)
      .limit(BATCH)
      .forNoKeyUpdate()
      .skipLocked()
      .execute();
    for (const box of expired) await beginDeletion(trx, box, { reason: 'expired' });
    return expired.length;
  });
}
