// `/v2/listeners`. Shapes and sentences are those that clients of the control plane read.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import { type Call, type Outcome, type Route, defineRoute } from '../api/route.ts';
import { mayCreateListeners } from '../identity/entitlement.ts';
import {
  type Listener,
  changeListener,
  createListener,
  deleteListener,
  listListeners,
  readListener,
} from './listeners.ts';

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const computeConfig = z.strictObject({
  k8s_namespaces: z
    .array(z.string().regex(LABEL, 'should be the name of a Kubernetes namespace'))
    .max(1000)
    .nullable()
    .optional(),
});
const version = z.string().max(128).nullable();

const listener = z
  .strictObject({
    id: z.uuid(),
    compute_type: z.literal('k8s'),
    compute_id: z.string(),
    compute_config: computeConfig,
    version,
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Listener' });

const creation = z.strictObject({
  compute_type: z.literal('k8s'),
  compute_id: z
    .string()
    .min(1)
    .max(253)
    .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'should have no control characters and marks of direction'),
  compute_config: computeConfig,
  version: version.optional(),
});
const change = z.strictObject({ compute_config: computeConfig.optional(), version: version.optional() });
const replacement = z.strictObject({ compute_config: computeConfig, version: version.optional() });

const params = z.strictObject({ listener_id: z.uuid() });
const page = z.strictObject({
  limit: z.int().min(1).max(100).default(20),
  offset: z.int().min(0).max(1_000_000_000).default(0),
});

const shared = { path: '/v2/listeners', tag: 'Listeners' } as const;
const one = { path: '/v2/listeners/{listener_id}', tag: 'Listeners', params } as const;

export const listenerRoutes: readonly Route[] = [
  defineRoute({
    ...shared,
    method: 'GET',
    summary: 'List the listeners of the workspace',
    access: { to: 'workspace', permission: 'deployments:read' },
    tracking: { untracked: 'a read that is not among the tracked operations' },
    query: page,
    success: { status: 200, body: z.strictObject({ resources: z.array(listener), offset: z.int() }) },
    failures: [],
    async handle({ db, workspaceId, query }) {
      const found = await listListeners(db, workspaceId, query);
      return { body: { resources: found.map(toBody), offset: query.offset + found.length } };
    },
  }),
  defineRoute({
    ...shared,
    method: 'POST',
    summary: 'Register compute as a listener',
    access: { to: 'workspace', permission: 'deployments:create' },
    tracking: { operation: 'create_listener' },
    body: creation,
    success: { status: 201, body: listener },
    failures: [409],
    async handle(call) {
      requireEntitlement(call);
      const { body, db, workspaceId } = call;
      const made = await createListener(db, workspaceId, { ...body, version: body.version ?? null });
      return changed(made);
    },
  }),
  defineRoute({
    ...one,
    method: 'GET',
    summary: 'Read a listener',
    access: { to: 'workspace', permission: 'deployments:read' },
    tracking: { untracked: 'a read that is not among the tracked operations' },
    success: { status: 200, body: listener },
    failures: [404],
    async handle(call) {
      requireEntitlement(call);
      return { body: toBody(await readListener(call.db, call.workspaceId, call.params.listener_id)) };
    },
  }),
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Change a listener; what is left out stays',
    access: { to: 'workspace', permission: 'deployments:update' },
    tracking: { operation: 'update_listener' },
    body: change,
    success: { status: 200, body: listener },
    failures: [404],
    async handle(call) {
      requireEntitlement(call);
      return changed(await changeListener(call.db, call.workspaceId, call.params.listener_id, call.body));
    },
  }),
  defineRoute({
    ...one,
    method: 'PUT',
    summary: 'Replace what can be changed of a listener; a version that is left out becomes null',
    access: { to: 'workspace', permission: 'deployments:update' },
    tracking: { operation: 'update_listener' },
    body: replacement,
    success: { status: 200, body: listener },
    failures: [404],
    async handle(call) {
      requireEntitlement(call);
      const { compute_config, version: given = null } = call.body;
      const { listener_id } = call.params;
      return changed(
        await changeListener(call.db, call.workspaceId, listener_id, { compute_config, version: given }),
      );
    },
  }),
  defineRoute({
    ...one,
    method: 'DELETE',
    summary: 'Delete a listener',
    access: { to: 'workspace', permission: 'deployments:delete' },
    tracking: { operation: 'delete_listener' },
    success: { status: 204 },
    failures: [404],
    async handle(call) {
      requireEntitlement(call);
      await deleteListener(call.db, call.workspaceId, call.params.listener_id);
      return {};
    },
  }),
];

/** Judged before the id is looked up, so that it tells nothing of what is there. */
function requireEntitlement({ caller, workspaceId }: Call): void {
  if (caller !== undefined && mayCreateListeners(caller.organization)) return;
  throw new DomainError(
    'forbidden',
    `Listeners cannot be created for workspace ID '${workspaceId}'. Creating listeners is only allowed for organizations with self-hosted enterprise plans.`,
  );
}

function changed(made: Listener): Outcome {
  return { body: toBody(made), resources: [made.id] };
}

function toBody({ created_at, updated_at, ...rest }: Listener): unknown {
  return { ...rest, created_at: created_at.toISOString(), updated_at: updated_at.toISOString() };
}
