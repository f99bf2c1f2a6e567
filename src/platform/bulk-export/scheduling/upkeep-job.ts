// Keeps exports where no worker runs: without one, they still end with their time, and schedules go on.
import { z } from '../../../base/schema.ts';
import { defineJob, type Job } from '../../store/job.ts';
import { databaseClock } from './clock.ts';
import { keepExports, type UpkeepRules } from './export-upkeep.ts';

/** Without the rules, which a process has before jobs run, nothing is done. */
export type ExportUpkeep = { readonly job: Job; begin(rules: UpkeepRules): void };

export function createExportUpkeep(): ExportUpkeep {
  let known: UpkeepRules | undefined;
  const job = defineJob({
    name: 'keep-exports',
    data: z.strictObject({}),
    ...{ retries: 0, delaySeconds: 0, timeoutSeconds: 300 },
    schedule: { everyMinutes: 1, data: {} },
    async run(_, { store, log }) {
      if (known === undefined) return;
      const done = await keepExports({ store, clock: databaseClock, rules: known, log });
      if (Object.values(done).some((count) => count > 0))
        log.info(done, 'interrupted runs, expired exports and due schedules were handled');
    },
  });
  return { job, begin: (rules) => void (known = rules) };
}
