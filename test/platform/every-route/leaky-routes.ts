// Routes with the defects that the tests of every route are there to find. They are in no platform.
import { DomainError } from '../../../src/base/domain-error.ts';
import { z } from '../../../src/base/schema.ts';
import { type Call, defineRoute, type Route } from '../../../src/platform/api/route.ts';

const shared = {
  method: 'GET',
  tag: 'Leaky',
  access: { to: 'workspace', permission: 'deployments:read' },
  tracking: { untracked: 'a test' },
  params: z.strictObject({ listener_id: z.uuid() }),
  success: { status: 200, body: z.strictObject({ id: z.uuid() }) },
  failures: [404],
} as const;

type Read = Call<{ readonly listener_id: string }, undefined, undefined>;

/** Whose listener it is; of nobody else's business. */
async function ownerOf({ db, params }: Read): Promise<string | undefined> {
  const row = await db
    .selectFrom('listeners')
    .select('workspace_id')
    .where('id', '=', params.listener_id)
    .executeTakeFirst();
  return row?.workspace_id;
}

function missing(id: string): DomainError {
  return new DomainError('not_found', `Listener ID ${id} not found.`);
}

export const leakyRoutes: readonly Route[] = [
  defineRoute({
    ...shared,
    path: '/v2/listeners/{listener_id}/of-anybody',
    summary: 'one that serves it',
    async handle(call) {
      if ((await ownerOf(call)) === undefined) throw missing(call.params.listener_id);
      return { body: { id: call.params.listener_id } };
    },
  }),
  defineRoute({
    ...shared,
    path: '/v2/listeners/{listener_id}/by-other-words',
    summary: 'one that refuses it by other words',
    async handle(call) {
      const owner = await ownerOf(call);
      if (owner === undefined) throw missing(call.params.listener_id);
      if (owner !== call.workspaceId) throw new DomainError('not_found', 'This listener is not yours.');
      return { body: { id: call.params.listener_id } };
    },
  }),
  defineRoute({
    ...shared,
    path: '/v2/listeners/{listener_id}/by-another-status',
    summary: 'one that refuses it by another status',
    async handle(call) {
      const owner = await ownerOf(call);
      if (owner === undefined) throw missing(call.params.listener_id);
      if (owner !== call.workspaceId)
        throw new DomainError('forbidden', `Listener ID ${call.params.listener_id} not found.`);
      return { body: { id: call.params.listener_id } };
    },
  }),
];

/** Says the same of all, and takes longer for what is there. */
export const slowRoute: Route = defineRoute({
  ...shared,
  path: '/v2/listeners/{listener_id}/with-another-query',
  summary: 'one that asks the database once more',
  access: { to: 'anyone' },
  async handle(call) {
    if ((await ownerOf(call)) !== undefined) await ownerOf(call);
    throw missing(call.params.listener_id);
  },
});
