// Removes events after their retention time, at night in UTC.
import { z } from '../../base/schema.ts';
import { expireEvents } from '../audit/retention.ts';
import { defineJob } from '../store/job.ts';

export const expireAuditEvents = defineJob({
  name: 'expire-audit-events',
  data: z.strictObject({}),
  retries: 5,
  delaySeconds: 1,
  timeoutSeconds: 900,
  schedule: { cron: '17 3 * * *', data: {} },
  async run(_, { store, log }) {
    log.info({ removed: await expireEvents(store, new Date()) }, 'audit events expired');
  },
});
