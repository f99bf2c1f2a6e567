// Routes that reveal foreign resources, which the tests of every route must find. They exist only in the tests.
import { DomainError } from '../../../src/base/domain-error.ts';
import { z } from '../../../src/base/schema.ts';
import { anyone, inWorkspace } from '../../../src/platform/api/access.ts';
import { defineRoute, type Handling, type Route } from '../../../src/platform/api/route.ts';

const shared = {
  method: 'GET',
  tag: 'Leaky',
  access: inWorkspace('deployments:read'),
  tracking: { untracked: 'a test' },
  params: z.strictObject({ listener_id: z.uuid() }),
  responses: { 200: z.strictObject({ id: z.uuid() }) },
  failures: [404],
} as const;

type Read = Handling & { readonly params: { readonly listener_id: string } };

/** The workspace of the listener. */
async function ownerOf({ db, params }: Read): Promise<string | undefined> {
  const row = await db
    .selectFrom('listeners')
    .select('workspace_id')
    .where('id', '=', params.listener_id)
    .executeTakeFirst();
  return row?.workspace_id;
}

function notFound(id: string): DomainError {
  return new DomainError('not_found', `Listener ID ${id} not found.`);
}

export const leakyRoutes: readonly Route[] = [
  defineRoute({
    ...shared,
    path: '/v2/listeners/{listener_id}/serves-all',
    summary: 'a route that serves a foreign listener',
    async handle(call) {
      if ((await ownerOf(call)) === undefined) throw notFound(call.params.listener_id);
      return { body: { id: call.params.listener_id } };
    },
  }),
  defineRoute({
    ...shared,
    path: '/v2/listeners/{listener_id}/another-message',
    summary: 'a route that rejects it with another message',
    async handle(call) {
      const owner = await ownerOf(call);
      if (owner === undefined) throw notFound(call.params.listener_id);
      if (owner !== call.workspaceId) throw new DomainError('not_found', 'This listener is not yours.');
      return { body: { id: call.params.listener_id } };
    },
  }),
  defineRoute({
    ...shared,
    path: '/v2/listeners/{listener_id}/another-status',
    summary: 'a route that rejects it with another status',
    async handle(call) {
      const owner = await ownerOf(call);
      if (owner === undefined) throw notFound(call.params.listener_id);
      if (owner !== call.workspaceId)
        throw new DomainError('forbidden', `Listener ID ${call.params.listener_id} not found.`);
      return { body: { id: call.params.listener_id } };
    },
  }),
];

/** The same response for all listeners, but slower for existing ones. */
export const slowRoute: Route = defineRoute({
  ...shared,
  path: '/v2/listeners/{listener_id}/extra-query',
  summary: 'a route that sends one more query',
  access: anyone,
  async handle(call) {
    if ((await ownerOf(call)) !== undefined) await ownerOf(call);
    throw notFound(call.params.listener_id);
  },
});

const nested = {
  ...shared,
  method: 'POST',
  access: inWorkspace('deployments:create'),
  tracking: { operation: 'create_listener' },
  params: undefined,
  body: z.strictObject({
    targets: z.array(z.strictObject({ source: z.strictObject({ listener_id: z.uuid() }) })).length(1),
  }),
} as const;

type Nested = Handling & {
  readonly workspaceId: string;
  readonly body: z.output<typeof nested.body>;
};

async function ownerOfNested({ db, body }: Nested): Promise<{ readonly id: string; readonly owner: string }> {
  const id = body.targets[0]?.source.listener_id ?? '';
  const owner = await ownerOf({ db, params: { listener_id: id } });
  if (owner === undefined) throw notFound(id);
  return { id, owner };
}

/** The id is deep in the body. */
export const nestedRoute: Route = defineRoute({
  ...nested,
  path: '/v2/listeners-in-body',
  summary: 'a route that serves a foreign listener named deep in a body',
  async handle(call) {
    return { body: { id: (await ownerOfNested(call)).id } };
  },
});

export const guardedRoute: Route = defineRoute({
  ...nested,
  path: '/v2/own-listeners-in-body',
  summary: 'a route that serves a listener named deep in a body',
  async handle(call) {
    const { id, owner } = await ownerOfNested(call);
    if (owner !== call.workspaceId) throw notFound(id);
    return { body: { id } };
  },
});
