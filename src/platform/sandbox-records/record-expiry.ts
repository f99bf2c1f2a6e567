// Deletes old records, at night in UTC.
import { z } from '../../base/schema.ts';
import { defineJob } from '../store/job.ts';
import { RECORD_RETENTION_MS, expireRecords } from './records.ts';

export const expireSandboxRecords = defineJob({
  name: 'expire-sandbox-records',
  data: z.strictObject({}),
  retries: 5,
  delaySeconds: 1,
  timeoutSeconds: 900,
  schedule: { cron: '47 3 * * *', data: {} },
  async run(_, { store, log }) {
    const olderThan = new Date(Date.now() - RECORD_RETENTION_MS);
    log.info({ removed: await expireRecords(store, olderThan) }, 'sandbox records expired');
  },
});
