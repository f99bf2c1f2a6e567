// Keeps runs as long as the setting says: makes the partitions of the next days, and removes what is older.
import { z } from '../../../base/schema.ts';
import { defineJob, type Job } from '../../store/job.ts';
import { postgresTraceStore } from '../store/postgres-trace-store.ts';
import type { TraceMeters } from '../trace-meters.ts';

/** Without the setting, which a process has before jobs run, nothing is removed. */
export type Retention = { readonly job: Job; keepDays(days: number): void };

export function createRetention(meters: Pick<TraceMeters, 'onExpired'>): Retention {
  let keptDays: number | undefined;
  const job = defineJob({
    name: 'expire-traces',
    data: z.strictObject({}),
    ...{ retries: 3, delaySeconds: 60, timeoutSeconds: 3_600 },
    schedule: { everyMinutes: 30, data: {} },
    async run(_, { store: { db }, log, signal }) {
      await postgresTraceStore.prepareDays(db);
      if (keptDays === undefined) return;
      const { dropped, left } = await postgresTraceStore.expireRuns(db, {
        ...{ keptDays, nowMs: Date.now(), signal },
      });
      meters.onExpired(dropped.length);
      if (dropped.length > 0) log.info({ days: dropped }, 'runs of traces expired');
      if (left.length > 0)
        log.warn(
          { days: left },
          'runs of traces expired, and queries keep their empty tables from being dropped',
        );
    },
  });
  return { job, keepDays: (days) => void (keptDays = days) };
}
