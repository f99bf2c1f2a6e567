// Deletes sessions that have ended, every hour.
import { z } from '../../base/schema.ts';
import { removeExpiredSessions } from '../identity/sessions.ts';
import { defineJob } from '../store/job.ts';

export const removeOldSessions = defineJob({
  name: 'remove-expired-sessions',
  data: z.strictObject({}),
  retries: 5,
  delaySeconds: 1,
  timeoutSeconds: 900,
  schedule: { cron: '7 * * * *', data: {} },
  async run(_, { store, log }) {
    log.info({ removed: await removeExpiredSessions(store.db, new Date()) }, 'expired sessions removed');
  },
});
