// Deletes old records, at night in UTC.
import { z } from '../../base/schema.ts';
import { defineJob } from '../store/job.ts';
import { sql } from '../store/sql.ts';
import { RECORD_RETENTION_MS, expireRecords } from './records.ts';

export const expireSandboxRecords = defineJob({
  name: 'expire-sandbox-records',
  data: z.strictObject({}),
  retries: 5,
  delaySeconds: 1,
  timeoutSeconds: 900,
  schedule: { cron: '47 3 * * *', data: {} },
  async run(_, { store, log }) {
    // By the clock of the database, which has set the times that they were received at.
    const { rows } = await sql<{ readonly now: Date }>`select now() as now`.execute(store.db);
    const [{ now } = { now: new Date(0) }] = rows;
    const olderThan = new Date(now.getTime() - RECORD_RETENTION_MS);
    log.info({ removed: await expireRecords(store, olderThan) }, 'sandbox records expired');
  },
});
