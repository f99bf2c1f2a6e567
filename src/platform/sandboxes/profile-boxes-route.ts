// `/v1/proxy-profiles/{profile_id}/boxes`: which sandboxes use a proxy profile, which version of it the proxy of each has
// acknowledged, and why not the latest one.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import { inWorkspace } from '../api/access.ts';
import { createCursorQuery } from '../api/paging.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import { readProfileVersions } from '../proxy-profiles/contract.ts';
import type { Database } from '../store/database.ts';
import { formatCursor, invalidCursor, parseCursor } from '../store/page-cursor.ts';
import { boxStatuses } from './box-states.ts';

const issue = z.strictObject({
  loc: z.array(z.union([z.string(), z.int()])),
  msg: z.string(),
  type: z.string(),
});

const profileBox = z
  .strictObject({
    id: z.uuid(),
    name: z.string(),
    status: z.enum(boxStatuses),
    version: z.int().nullable().describe('Of the profile in the document of the sandbox'),
    acknowledged_version: z
      .int()
      .nullable()
      .describe('Of the profile in the document that the proxy has acknowledged; null: none yet'),
    status_message: z.string().nullable(),
    issues: z
      .array(issue)
      .describe(
        'Why the latest version could not be given to the sandbox, as a change of it would be rejected',
      ),
  })
  .meta({ id: 'ProxyProfileSandbox' });

export const profileBoxesRoute: Route = defineRoute({
  method: 'GET',
  path: '/v1/proxy-profiles/{profile_id}/boxes',
  tag: 'Proxy profiles',
  summary:
    'List the sandboxes that use a proxy profile, with the version that the proxy of each has acknowledged',
  access: inWorkspace('sandboxes:read'),
  tracking: UNTRACKED_READ,
  params: z.strictObject({ profile_id: z.guid() }),
  query: createCursorQuery(100, 1_000).extend({
    filter: z
      .enum(['all', 'behind'])
      .default('all')
      .describe('behind: only those that have not acknowledged the latest version'),
  }),
  responses: {
    200: z.strictObject({
      version: z.int().describe('Of the profile'),
      boxes: z.array(profileBox),
      next_cursor: z.string().nullable(),
    }),
  },
  failures: [404],
  async handle({ db, workspaceId, params: { profile_id: profileId }, query }) {
    const version = (await readProfileVersions(db, workspaceId, [profileId])).get(profileId);
    if (version === undefined) throw new DomainError('not_found', 'Proxy profile not found');
    const { rows, cursor } = await listUsers(db, { workspaceId, profileId, version }, query);
    return { body: { version, boxes: rows.map(toProfileBox), next_cursor: cursor } };
  },
});

type Wanted = { readonly workspaceId: string; readonly profileId: string; readonly version: number };
type Page = {
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly filter: 'all' | 'behind';
};

const COLUMNS = [
  ...(['id', 'name', 'status', 'status_message', 'profile_version', 'profile_problem'] as const),
  ...(['proxy_profile_id', 'applied_profile_id', 'applied_profile_version'] as const),
] as const;
const position = z.strictObject({ id: z.guid() });

/** Throws InvalidInput for a cursor that was not returned for the same filters. */
async function listUsers(db: Database, { workspaceId, profileId, version }: Wanted, page: Page) {
  const { limit, cursor, filter } = page;
  const filters = ['sandboxes of a profile', workspaceId, profileId, filter];
  const after = cursor === undefined ? undefined : parseCursor(cursor, position, filters);
  if (cursor !== undefined && after === undefined) throw invalidCursor();
  const found = await db
    .selectFrom('boxes')
    .select(COLUMNS)
    .where('workspace_id', '=', workspaceId)
    .where('proxy_profile_id', '=', profileId)
    .$if(after !== undefined, (query) => query.where('id', '>', after?.id ?? ''))
    .$if(filter === 'behind', (query) =>
      query.where(({ eb, or }) =>
        or([
          eb('applied_profile_id', 'is distinct from', profileId),
          eb('applied_profile_version', 'is distinct from', version),
        ]),
      ),
    )
    .orderBy('id')
    .limit(limit + 1)
    .execute();
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  return { rows, cursor: last === undefined ? null : formatCursor({ id: last.id }, filters) };
}

type Row = Awaited<ReturnType<typeof listUsers>>['rows'][number];

function toProfileBox(row: Row) {
  const { id, name, status, status_message, profile_version: version, profile_problem } = row;
  const isAcknowledged = row.applied_profile_id === row.proxy_profile_id;
  return {
    ...{ id, name, status, version, status_message },
    acknowledged_version: isAcknowledged ? row.applied_profile_version : null,
    issues: (profile_problem ?? []).map(({ loc, msg, type }) => ({ loc: [...loc], msg, type })),
  };
}
