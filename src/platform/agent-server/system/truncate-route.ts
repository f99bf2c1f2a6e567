// `POST /internal/truncate`, by which public test suites begin anew. It is there with SALLYPORT_AGENT_TRUNCATE alone: it deletes
// what every user of the deployment has.
import { z } from '../../../base/schema.ts';
import type { Access } from '../../api/access.ts';
import { type Route, defineRoute } from '../../api/route.ts';
import { sql } from '../../store/sql.ts';

const flag = z.boolean().default(false);

export function createTruncateRoute(access: Access): Route {
  return defineRoute({
    ...{
      method: 'POST',
      path: '/internal/truncate',
      tag: 'System',
      summary: 'Delete everything (test suites)',
    },
    access,
    tracking: { untracked: 'the audit log is that of the platform' },
    body: z.object({ runs: flag, threads: flag, assistants: flag, checkpointer: flag, store: flag }),
    responses: { 200: z.strictObject({ ok: z.literal(true) }) },
    async handle({ db, body }) {
      if (body.runs) await sql`delete from agent_runs`.execute(db);
      if (body.checkpointer)
        await sql`with checkpoints as (delete from agent_checkpoints),
          stored as (delete from agent_checkpoint_values) delete from agent_checkpoint_writes`.execute(db);
      if (body.threads) await sql`delete from agent_threads`.execute(db);
      // The default ones are made when a process starts.
      if (body.assistants)
        await sql`delete from agent_assistants where metadata->>'created_by' is distinct from 'system'`.execute(
          db,
        );
      return { body: { ok: true as const } };
    },
  });
}
