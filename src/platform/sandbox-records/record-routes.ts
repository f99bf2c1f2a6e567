// Records of sandboxes: a sidecar sends them in batches with the token of its sandbox; callers of the workspace list them.
import { z } from '../../base/schema.ts';
import { inWorkspace } from '../api/access.ts';
import { createCursorQuery } from '../api/paging.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import { listRecords, RANGE, recordBatch, storableTime, storedRecord, storeRecords } from './contract.ts';
import { withSandboxToken } from './sandbox-access.ts';
import { sandboxName, tokenRoutes } from './token-routes.ts';

const sendRecords = defineRoute({
  method: 'POST',
  path: '/v1/sandbox-records',
  tag: 'Sandbox records',
  summary: 'Store records of the sandbox of the token; records that are already stored are ignored',
  access: withSandboxToken,
  tracking: { untracked: 'the records themselves say what happened' },
  body: recordBatch,
  responses: { 200: z.strictObject({ received: z.int(), added: z.int().describe('Records that were new') }) },
  failures: [413],
  // Each uses a database connection. Two of a sandbox: a batch may be sent again while its first attempt is in progress.
  limits: { running: { total: 8, perCaller: 2 } },
  async handle({ db, workspaceId, sandbox, body }) {
    const added = await storeRecords(db, { workspaceId, sandbox }, body);
    return { body: { received: body.records.length, added } };
  },
});

const readRecords = defineRoute({
  method: 'GET',
  path: '/v1/sandboxes/{sandbox}/records',
  tag: 'Sandbox records',
  summary: 'List the records of a sandbox, newest first',
  access: inWorkspace('sandboxes:read'),
  tracking: UNTRACKED_READ,
  params: z.strictObject({ sandbox: sandboxName }),
  query: createCursorQuery(100, 1_000).extend({
    start_time: storableTime.optional().describe(`Inclusive. ${RANGE}`),
    end_time: storableTime.optional().describe(`Exclusive. ${RANGE}`),
  }),
  responses: { 200: z.strictObject({ records: z.array(storedRecord), next_cursor: z.string().nullable() }) },
  async handle({ db, workspaceId, params: { sandbox }, query: { limit, cursor, start_time, end_time } }) {
    const window = { limit, cursor, startTime: toDate(start_time), endTime: toDate(end_time) };
    const { records, cursor: next_cursor } = await listRecords(db, { workspaceId, sandbox }, window);
    return { body: { records, next_cursor } };
  },
});

function toDate(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}

export const sandboxRecordRoutes: readonly Route[] = [...tokenRoutes, sendRecords, readRecords];
