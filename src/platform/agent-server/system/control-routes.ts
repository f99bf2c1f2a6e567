// What the runner of a deployment asks of an instance: to drain, and what still runs in it. In no description of the API.
import { z } from '../../../base/schema.ts';
import type { Access } from '../../api/access.ts';
import type { Server } from '../../api/server.ts';
import { type Route, defineRoute } from '../../api/route.ts';
import { sql } from '../../store/sql.ts';
import { type AgentStatus, DRAIN_PATH, STATUS_PATH } from '../contract.ts';
import type { RunQueue } from '../queue/run-queue.ts';
import type { RunStreams } from '../streams/run-streams.ts';

export type ControlParts = {
  readonly access: Access;
  readonly queue: Pick<RunQueue, 'stop' | 'isStopped' | 'running'>;
  readonly streams: Pick<RunStreams, 'retire'>;
  /** Undefined until the server listens. */
  server(): Pick<Server, 'running' | 'streams'> | undefined;
};

const status = z.strictObject({
  draining: z.boolean(),
  requests: z.int(),
  streams: z.int(),
  runs: z.int(),
}) satisfies z.ZodType<AgentStatus>;

const shared = { tag: 'System', tracking: { untracked: 'the audit log is of the platform' } } as const;

export function createControlRoutes({ access, queue, streams, server }: ControlParts): readonly Route[] {
  return [
    defineRoute({
      ...{ ...shared, access, method: 'POST', path: DRAIN_PATH, summary: 'Claim no run any more' },
      responses: { 202: z.strictObject({ draining: z.literal(true) }) },
      // Not in the transaction: it must begin while the database is away, too.
      async prepare() {
        queue.stop();
        streams.retire();
      },
      handle: async () => ({ body: { draining: true as const } }),
    }),
    defineRoute({
      ...{ ...shared, access, method: 'GET', path: STATUS_PATH, summary: 'What still runs' },
      query: z.object({ check_db: z.enum(['0', '1']).optional() }),
      responses: { 200: status },
      async handle({ db, query }) {
        if (query.check_db === '1') await sql`select 1`.execute(db);
        const { running = 1, streams = 0 } = server() ?? {};
        // Without this request.
        const counts = { requests: running - 1, streams, runs: queue.running };
        return { body: { draining: queue.isStopped, ...counts } };
      },
    }),
  ];
}
