// What is removed of deployments by time: old log lines, uploads that nobody used, sources that no revision needs, lost runners.
import { z } from '../../base/schema.ts';
import { removeExcessLines, removeOldLines } from '../deployments/deployment-logs.ts';
import { pendingStatuses } from '../deployments/revision-states.ts';
import { removeLostRunners } from '../deployments/runners.ts';
import type { Database } from '../store/database.ts';
import { defineJob } from '../store/job.ts';
import { sql } from '../store/sql.ts';

const shared = {
  data: z.strictObject({}),
  ...{ retries: 3, delaySeconds: 5, timeoutSeconds: 600 },
} as const;

/** Of all lines of one deployment. */
export const MAX_LOG_BYTES = 64 * 1024 * 1024;

const trimDeploymentLogs = defineJob({
  ...shared,
  name: 'trim-deployment-logs',
  schedule: { everyMinutes: 1, data: {} },
  async run(_, { store, signal }) {
    while (!signal.aborted && (await removeExcessLines(store.db, MAX_LOG_BYTES)));
  },
});

const tidyDeployments = defineJob({
  ...shared,
  name: 'tidy-deployments',
  schedule: { everyMinutes: 10, data: {} },
  async run(_, { store, signal }) {
    while (!signal.aborted && (await removeOldLines(store.db)));
    await removeLostRunners(store.db);
    await removeUnusedUploads(store.db);
  },
});

export const upkeepJobs = [trimDeploymentLogs, tidyDeployments];

/**
 * Rows, whose files are removed by the next sweep. A source is needed by revisions that are pending, active or the latest, and by those
 * whose build is kept: a runner may need to build it again.
 */
export async function removeUnusedUploads(db: Database): Promise<void> {
  await sql`
    delete from deployment_uploads u where case u.state
      when 'open' then u.expires_at < now() - interval '1 hour'
      when 'stored' then u.expires_at < now() - interval '1 day'
      else not exists (
        select from revisions r join deployments d on d.id = r.deployment_id left join builds b on b.id = r.build_id
        where r.deployment_id = u.deployment_id and r.source_revision_config->>'source_tarball_path' = u.object_path
          and (r.id in (d.latest_revision_id, d.active_revision_id) or r.status in (${sql.join(pendingStatuses)})
            or b.ready_at is not null and b.removed_at is null))
    end`.execute(db);
}
