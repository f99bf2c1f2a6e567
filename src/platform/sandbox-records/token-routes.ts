// The tokens of a sandbox: created and shown once, listed by their first and last characters, deleted.
import { DomainError } from '../../base/domain-error.ts';
import { SANDBOX_ID } from '../../base/sandbox-id.ts';
import { z } from '../../base/schema.ts';
import { inWorkspace } from '../api/access.ts';
import { type Route, defineRoute } from '../api/route.ts';
import { mintKey } from '../identity/api-key.ts';
import { requireWithinLife } from '../identity/authorization.ts';
import type { Database } from '../store/database.ts';
import { RANGE, storableTime } from './contract.ts';

/** Enough to rotate tokens without a gap on many machines. */
const MAX_TOKENS = 50;

export const sandboxName = z
  .string()
  .min(1)
  .max(63)
  .regex(SANDBOX_ID, 'Input must be a label of lower case letters, digits and inner hyphens');

const shown = z.strictObject({
  id: z.uuid(),
  sandbox: sandboxName,
  short_token: z.string().describe('The first and the last characters'),
  created_at: storableTime,
  expires_at: storableTime.nullable(),
});

const COLUMNS = shown.keyof().options;

const all = {
  path: '/v1/sandboxes/{sandbox}/tokens',
  tag: 'Sandbox records',
  params: z.strictObject({ sandbox: sandboxName }),
} as const;

const createToken = defineRoute({
  ...all,
  method: 'POST',
  summary: 'Create a token with which a sidecar sends the records of one sandbox',
  access: inWorkspace('sandboxes:manage'),
  tracking: { operation: 'create_sandbox_token' },
  body: z
    .strictObject({
      expires_at: storableTime
        .nullable()
        .optional()
        .describe(
          `Without it the token does not expire. Not later than that of the API key of the request. ${RANGE}`,
        ),
    })
    .optional(),
  responses: { 201: shown.extend({ token: z.string().describe('Only this response contains the token') }) },
  failures: [400, 409],
  async handle({ db, caller, workspaceId, params: { sandbox }, body }) {
    const expiry = body?.expires_at ?? null;
    const expires_at = expiry === null ? null : new Date(expiry);
    if (expires_at !== null && expires_at.getTime() <= Date.now())
      throw new DomainError('unusable', 'expires_at must be in the future');
    requireWithinLife(caller, expires_at);
    await requireCapacity(db, workspaceId, sandbox);
    const { text, shortKey, hash } = mintKey('sandbox');
    const row = await db
      .insertInto('sandbox_tokens')
      .values({ workspace_id: workspaceId, sandbox, short_token: shortKey, hash, expires_at })
      .returning(COLUMNS)
      .executeTakeFirstOrThrow();
    return { body: { ...row, token: text }, resources: [row.id] };
  },
});

/** Locks the workspace until the commit, so that two concurrent requests are counted one after the other. */
async function requireCapacity(trx: Database, workspaceId: string, sandbox: string): Promise<void> {
  await trx.selectFrom('workspaces').select('id').where('id', '=', workspaceId).forNoKeyUpdate().execute();
  const { count } = await trx
    .selectFrom('sandbox_tokens')
    .where('workspace_id', '=', workspaceId)
    .where('sandbox', '=', sandbox)
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  if (Number(count) >= MAX_TOKENS)
    throw new DomainError('conflict', `A sandbox can have at most ${MAX_TOKENS} tokens: delete one first`);
}

const listTokens = defineRoute({
  ...all,
  method: 'GET',
  summary: 'List the tokens of a sandbox',
  access: inWorkspace('sandboxes:read'),
  tracking: { untracked: 'reads only names and shortened tokens' },
  responses: { 200: z.strictObject({ tokens: z.array(shown) }) },
  async handle({ db, workspaceId, params: { sandbox } }) {
    const tokens = await db
      .selectFrom('sandbox_tokens')
      .select(COLUMNS)
      .where('workspace_id', '=', workspaceId)
      .where('sandbox', '=', sandbox)
      .orderBy('created_at', 'desc')
      .orderBy('id')
      .execute();
    return { body: { tokens } };
  },
});

const deleteToken = defineRoute({
  method: 'DELETE',
  path: '/v1/sandboxes/{sandbox}/tokens/{token_id}',
  tag: 'Sandbox records',
  summary: 'Delete a token of a sandbox; it is rejected from then on',
  access: inWorkspace('sandboxes:manage'),
  tracking: { operation: 'delete_sandbox_token' },
  revokes: true,
  params: z.strictObject({ sandbox: sandboxName, token_id: z.guid() }),
  responses: { 204: null },
  failures: [404],
  async handle({ db, workspaceId, params: { sandbox, token_id: id } }) {
    await db
      .deleteFrom('sandbox_tokens')
      .where('workspace_id', '=', workspaceId)
      .where('sandbox', '=', sandbox)
      .where('id', '=', id)
      .returning('id')
      .executeTakeFirstOrThrow(() => new DomainError('not_found', 'Sandbox token not found'));
    return { resources: [id] };
  },
});

export const tokenRoutes: readonly Route[] = [createToken, listTokens, deleteToken];
