// Records of sandboxes, as routes: a sidecar sends batches by the token of its sandbox, a person of the workspace reads
// them. Who is allowed is judged before.
import { InvalidInput } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import { type Route, defineRoute } from '../api/route.ts';
import { createBatchPlaces } from './batch-places.ts';
import { pointInTime } from './point-in-time.ts';
import { keptRecord, recordBatch } from './record-schema.ts';
import { type Position, formatCursor, keepRecords, parseCursor, readRecords } from './records.ts';
import { sandboxName, tokenRoutes } from './token-routes.ts';

/** Of this process. The second lets a batch in that is sent again while the first try of it is still under way. */
const places = createBatchPlaces({ inAll: 8, ofOne: 2 });

const takeRecords: Route = defineRoute({
  method: 'POST',
  path: '/v1/sandbox-records',
  tag: 'Sandbox records',
  summary: 'Take in records of the sandbox whose token comes; those that came before are passed over',
  access: { to: 'sandbox' },
  tracking: { untracked: 'records are themselves the account of what happened' },
  body: recordBatch,
  success: {
    status: 200,
    body: z.strictObject({ received: z.int(), added: z.int().describe('Those that were not there yet') }),
  },
  failures: [413],
  async handle({ db, workspaceId, sandbox, body }) {
    const place = { workspaceId, sandbox };
    const added = await places.run(`${workspaceId}/${sandbox}`, () => keepRecords(db, place, body));
    return { body: { received: body.records.length, added } };
  },
});

const listRecords: Route = defineRoute({
  method: 'GET',
  path: '/v1/sandboxes/{sandbox}/records',
  tag: 'Sandbox records',
  summary: 'Read the records of a sandbox, newest first',
  access: { to: 'workspace', permission: 'sandboxes:read' },
  tracking: { untracked: 'a read that is not among the tracked operations' },
  params: z.strictObject({ sandbox: sandboxName }),
  query: z.strictObject({
    limit: z.int().min(1).max(1_000).default(100),
    cursor: z.string().max(256).optional().describe('The next_cursor of the page before'),
    start_time: pointInTime.optional().describe('Included'),
    end_time: pointInTime.optional().describe('Excluded'),
  }),
  success: {
    status: 200,
    body: z.strictObject({
      records: z.array(keptRecord),
      next_cursor: z.string().nullable(),
    }),
  },
  failures: [],
  async handle({ db, workspaceId, params: { sandbox }, query }) {
    const { records, next } = await readRecords(
      db,
      { workspaceId, sandbox },
      {
        limit: query.limit,
        startTime: toDate(query.start_time),
        endTime: toDate(query.end_time),
        after: query.cursor === undefined ? undefined : readCursor(query.cursor),
      },
    );
    return { body: { records, next_cursor: next === undefined ? null : formatCursor(next) } };
  },
});

function toDate(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}

function readCursor(text: string): Position {
  const found = parseCursor(text);
  if (found !== undefined) return found;
  const msg = 'Input should be a next_cursor of this list';
  throw new InvalidInput([{ loc: ['query', 'cursor'], msg, type: 'value_error' }]);
}

export const sandboxRecordRoutes: readonly Route[] = [...tokenRoutes, takeRecords, listRecords];
