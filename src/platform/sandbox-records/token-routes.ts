// The tokens of a sandbox, as routes: made and told once, listed by their ends, deleted. Who is allowed is judged before.
import { DomainError } from '../../base/domain-error.ts';
import { SANDBOX_ID } from '../../base/sandbox-id.ts';
import { z } from '../../base/schema.ts';
import { type Route, defineRoute } from '../api/route.ts';
import type { Database } from '../store/database.ts';
import { pointInTime as time } from './point-in-time.ts';
import { mintSandboxToken } from './sandbox-token.ts';

/** Enough to replace one without a gap, on many machines. */
const MAX_TOKENS = 50;

export const sandboxName: z.ZodString = z
  .string()
  .min(1)
  .max(63)
  .regex(SANDBOX_ID, 'Input should be a label of lower case letters, digits and inner hyphens');

const shown = z.strictObject({
  id: z.uuid(),
  sandbox: sandboxName,
  short_token: z.string().describe('Its beginning and its end'),
  created_at: time,
  expires_at: time.nullable(),
});

type Shown = z.output<typeof shown>;
type Row = {
  readonly id: string;
  readonly sandbox: string;
  readonly short_token: string;
  readonly created_at: Date;
  readonly expires_at: Date | null;
};

const columns = ['id', 'sandbox', 'short_token', 'created_at', 'expires_at'] as const;

function show(row: Row): Shown {
  const expires = row.expires_at?.toISOString() ?? null;
  return { ...row, created_at: row.created_at.toISOString(), expires_at: expires };
}

const createToken: Route = defineRoute({
  method: 'POST',
  path: '/v1/sandboxes/{sandbox}/tokens',
  tag: 'Sandbox records',
  summary: 'Make a token by which a sidecar sends the records of one sandbox',
  access: { to: 'workspace', permission: 'sandboxes:manage' },
  tracking: { operation: 'create_sandbox_token' },
  params: z.strictObject({ sandbox: sandboxName }),
  body: z
    .strictObject({ expires_at: time.nullable().optional().describe('Without one it does not expire') })
    .optional(),
  success: { status: 201, body: shown.extend({ token: z.string().describe('Told here and never again') }) },
  failures: [400, 409],
  async handle({ db, workspaceId, params: { sandbox }, body }) {
    const { expires_at: until = null } = body ?? {};
    const expires = until === null ? null : new Date(until);
    if (expires !== null && expires.getTime() <= Date.now())
      throw new DomainError('unusable', 'expires_at should lie in the future');
    await requireCapacity(db, workspaceId, sandbox);
    const { text, shortToken, hash } = mintSandboxToken();
    const row = await db
      .insertInto('sandbox_tokens')
      .values({ workspace_id: workspaceId, sandbox, short_token: shortToken, hash, expires_at: expires })
      .returning(columns)
      .executeTakeFirstOrThrow();
    return { body: { ...show(row), token: text }, resources: [row.id] };
  },
});

/** The workspace is held until the commit: two that come at once are counted one after the other. */
async function requireCapacity(trx: Database, workspaceId: string, sandbox: string): Promise<void> {
  await trx.selectFrom('workspaces').select('id').where('id', '=', workspaceId).forNoKeyUpdate().execute();
  const { count } = await trx
    .selectFrom('sandbox_tokens')
    .where('workspace_id', '=', workspaceId)
    .where('sandbox', '=', sandbox)
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  if (Number(count) >= MAX_TOKENS)
    throw new DomainError('conflict', `A sandbox may have ${MAX_TOKENS} tokens: delete one first`);
}

const listTokens: Route = defineRoute({
  method: 'GET',
  path: '/v1/sandboxes/{sandbox}/tokens',
  tag: 'Sandbox records',
  summary: 'List the tokens of a sandbox',
  access: { to: 'workspace', permission: 'sandboxes:read' },
  tracking: { untracked: 'reads nothing but names and ends of tokens' },
  params: z.strictObject({ sandbox: sandboxName }),
  success: { status: 200, body: z.strictObject({ tokens: z.array(shown) }) },
  failures: [],
  async handle({ db, workspaceId, params: { sandbox } }) {
    const rows = await db
      .selectFrom('sandbox_tokens')
      .select(columns)
      .where('workspace_id', '=', workspaceId)
      .where('sandbox', '=', sandbox)
      .orderBy('created_at', 'desc')
      .orderBy('id')
      .execute();
    return { body: { tokens: rows.map(show) } };
  },
});

const deleteToken: Route = defineRoute({
  method: 'DELETE',
  path: '/v1/sandboxes/{sandbox}/tokens/{token_id}',
  tag: 'Sandbox records',
  summary: 'Delete a token of a sandbox; what is sent with it from now on is refused',
  access: { to: 'workspace', permission: 'sandboxes:manage' },
  tracking: { operation: 'delete_sandbox_token' },
  params: z.strictObject({ sandbox: sandboxName, token_id: z.uuid() }),
  success: { status: 204 },
  failures: [404],
  async handle({ db, workspaceId, params: { sandbox, token_id: id } }) {
    const { numDeletedRows } = await db
      .deleteFrom('sandbox_tokens')
      .where('workspace_id', '=', workspaceId)
      .where('sandbox', '=', sandbox)
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    if (numDeletedRows === 0n) throw new DomainError('not_found', 'There is no such token of a sandbox');
    return { resources: [id] };
  },
});

export const tokenRoutes: readonly Route[] = [createToken, listTokens, deleteToken];
