// `/v2/listeners`. The documents and error messages are those that existing control-plane clients parse.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import { inWorkspace, type WorkspaceGrant } from '../api/access.ts';
import { createPageQuery } from '../api/paging.ts';
import { type Route, UNTRACKED_READ, defineRoute, resourceOutcome } from '../api/route.ts';
import { mayCreateListeners } from '../identity/entitlement.ts';
import {
  changeListener,
  createListener,
  deleteListener,
  listListeners,
  listener,
  listenerChange,
  newListener,
  readListener,
} from './listeners.ts';

const replacement = newListener.pick({ compute_config: true, version: true });

// Any UUID: there is no listener with one of another variant.
const params = z.strictObject({ listener_id: z.guid() });
const shared = { path: '/v2/listeners', tag: 'Listeners' } as const;
const one = { path: '/v2/listeners/{listener_id}', tag: 'Listeners', params } as const;

export const listenerRoutes: readonly Route[] = [
  defineRoute({
    ...shared,
    method: 'GET',
    summary: 'List the listeners of the workspace',
    access: inWorkspace('deployments:read'),
    tracking: UNTRACKED_READ,
    query: createPageQuery(20),
    responses: { 200: z.strictObject({ resources: z.array(listener), offset: z.int() }) },
    async handle({ db, workspaceId, query }) {
      const resources = await listListeners(db, workspaceId, query);
      return { body: { resources, offset: query.offset + resources.length } };
    },
  }),
  defineRoute({
    ...shared,
    method: 'POST',
    summary: 'Register compute as a listener',
    access: inWorkspace('deployments:create'),
    tracking: { operation: 'create_listener' },
    body: newListener,
    responses: { 201: listener },
    failures: [409],
    async handle(call) {
      requireEntitlement(call);
      return resourceOutcome(await createListener(call.db, call.workspaceId, call.body));
    },
  }),
  defineRoute({
    ...one,
    method: 'GET',
    summary: 'Read a listener',
    access: inWorkspace('deployments:read'),
    tracking: UNTRACKED_READ,
    responses: { 200: listener },
    failures: [404],
    async handle(call) {
      requireEntitlement(call);
      return { body: await readListener(call.db, call.workspaceId, call.params.listener_id) };
    },
  }),
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Change a listener; fields that are left out are not changed',
    access: inWorkspace('deployments:update'),
    tracking: { operation: 'update_listener' },
    body: listenerChange,
    responses: { 200: listener },
    failures: [404],
    async handle(call) {
      requireEntitlement(call);
      const { db, workspaceId, params, body } = call;
      return resourceOutcome(await changeListener(db, workspaceId, params.listener_id, body));
    },
  }),
  defineRoute({
    ...one,
    method: 'PUT',
    summary: 'Replace the changeable fields of a listener; a version that is left out becomes null',
    access: inWorkspace('deployments:update'),
    tracking: { operation: 'update_listener' },
    body: replacement,
    responses: { 200: listener },
    failures: [404],
    async handle(call) {
      requireEntitlement(call);
      const { db, workspaceId, params, body } = call;
      const whole = { ...body, version: body.version ?? null };
      return resourceOutcome(await changeListener(db, workspaceId, params.listener_id, whole));
    },
  }),
  defineRoute({
    ...one,
    method: 'DELETE',
    summary: 'Delete a listener',
    access: inWorkspace('deployments:delete'),
    tracking: { operation: 'delete_listener' },
    responses: { 204: null },
    failures: [404, 409],
    async handle(call) {
      requireEntitlement(call);
      await deleteListener(call.db, call.workspaceId, call.params.listener_id);
    },
  }),
];

/** Checked before the listener is looked up, so that the response does not show whether it exists. */
function requireEntitlement({ caller, workspaceId }: WorkspaceGrant): void {
  if (mayCreateListeners(caller.organization)) return;
  throw new DomainError(
    'forbidden',
    `Listeners cannot be created for workspace ID '${workspaceId}'. Creating listeners is only allowed for organizations with self-hosted enterprise plans.`,
  );
}
