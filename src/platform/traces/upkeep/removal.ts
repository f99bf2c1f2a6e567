// Removes the runs, the feedback and the attachments of projects that are gone, also of those that went with their workspace.
import { z } from '../../../base/schema.ts';
import { defineJob } from '../../store/job.ts';
import { postgresTraceStore } from '../store/postgres-trace-store.ts';

export const removeTraces = defineJob({
  name: 'remove-traces',
  data: z.strictObject({}),
  ...{ retries: 3, delaySeconds: 30, timeoutSeconds: 3_600 },
  schedule: { everyMinutes: 1, data: {} },
  async run(_, { store: { db }, signal }) {
    const removals = await db.selectFrom('trace_removals').selectAll().orderBy('deleted_at').execute();
    for (const { workspace_id: workspaceId, session_id: id } of removals) {
      while (!signal.aborted && !(await postgresTraceStore.removeRuns(db, { workspaceId, id })));
      if (signal.aborted) return;
      const isOfProject = { workspace_id: workspaceId, session_id: id };
      // The removal last: an attempt that ends before is repeated.
      for (const table of ['trace_feedback', 'trace_project_spans', 'trace_removals'] as const)
        await db
          .deleteFrom(table)
          .where((eb) => eb.and(isOfProject))
          .execute();
    }
  },
});
