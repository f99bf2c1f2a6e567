// `/v2/deployments`. The documents and error messages are those that existing control-plane clients parse.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { inWorkspace, type WorkspaceGrant } from '../../api/access.ts';
import { createPageQuery } from '../../api/paging.ts';
import { defineRoute, type Route, UNTRACKED_READ } from '../../api/route.ts';
import type { Transaction } from '../../store/database.ts';
import { type Deleted, deleteDeployment, toDeletionScope } from './deployment-deleting.ts';
import { deploymentChange, newDeployment, shownDeployment, shownStatuses } from './deployment-schema.ts';
import { listDeployments, readDeployment } from './deployments.ts';
import { changeDeployment, createDeployment, type Write, type Writing } from './deployment-writing.ts';

const MAX_DELETED = 100;

const ids = z.array(z.guid()).max(MAX_DELETED);
const params = z.strictObject({ deployment_id: z.guid() });
const all = { path: '/v2/deployments', tag: 'Deployments' } as const;
const one = { path: '/v2/deployments/{deployment_id}', tag: 'Deployments', params } as const;
/** Known to clients: nothing else makes revisions. */
export const withoutEffect = z.string().max(16).optional().describe('Without effect');
/** As clients in several languages write it. */
const deletesProject = z
  .enum(['true', 'false', 'True', 'False', '1', '0'])
  .default('false')
  .describe('Also delete the tracing project of the name of the deployment, with its runs')
  .transform((text) => /^[tT1]/.test(text));

export function createDeploymentRoutes(writing: Writing): readonly Route[] {
  return [listRoute, createRoute(writing), deleteManyRoute, readRoute, changeRoute(writing), deleteRoute];
}

const listRoute = defineRoute({
  ...all,
  method: 'GET',
  summary: 'List the deployments of the workspace, the newest first',
  access: inWorkspace('deployments:read'),
  tracking: UNTRACKED_READ,
  query: createPageQuery(20).extend({
    name_contains: z.string().max(128).optional(),
    status: z.enum(shownStatuses).optional(),
    image_version: z.string().max(128).optional(),
    deployment_type: z.string().max(32).optional(),
    deployment_ids: ids.optional(),
    remote_reconciled: withoutEffect,
  }),
  responses: { 200: z.strictObject({ resources: z.array(shownDeployment), offset: z.int() }) },
  async handle({ db, workspaceId, query }) {
    const resources = await listDeployments(db, workspaceId, query);
    return { body: { resources, offset: query.offset + resources.length } };
  },
});

const createRoute = (writing: Writing): Route =>
  defineRoute({
    ...all,
    method: 'POST',
    summary: 'Create a deployment with its first revision; one without a source waits for it',
    access: inWorkspace('deployments:create'),
    tracking: { operation: 'create_deployment' },
    body: newDeployment,
    responses: { 201: shownDeployment },
    failures: [400, 404],
    prepare: () => writing.vault.prepare(),
    async handle(call) {
      const id = await createDeployment(writing, toWrite(call), call.body);
      return outcome(call, id);
    },
  });

const readRoute = defineRoute({
  ...one,
  method: 'GET',
  summary: 'Read a deployment; values of secrets are not shown',
  access: inWorkspace('deployments:read'),
  tracking: UNTRACKED_READ,
  responses: { 200: shownDeployment },
  failures: [404],
  async handle({ db, workspaceId, params: { deployment_id: id } }) {
    return { body: await readDeployment(db, workspaceId, id) };
  },
});

const changeRoute = (writing: Writing): Route =>
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Change a deployment; a new source, secrets or resource_spec make a revision',
    access: inWorkspace('deployments:update'),
    tracking: { operation: 'update_deployment' },
    body: deploymentChange,
    responses: { 200: shownDeployment },
    failures: [400, 404],
    prepare: () => writing.vault.prepare(),
    async handle(call) {
      const id = call.params.deployment_id;
      const revisionId = await changeDeployment(writing, toWrite(call), id, call.body);
      return outcome(call, id, revisionId);
    },
  });

const deleteRoute = defineRoute({
  ...one,
  method: 'DELETE',
  summary: 'Delete a deployment: it is gone when nothing of it runs any more',
  access: inWorkspace('deployments:delete'),
  tracking: { operation: 'delete_deployment' },
  query: z.strictObject({ delete_tracing_project: deletesProject }),
  responses: { 204: null },
  failures: [404],
  async handle(call) {
    const id = call.params.deployment_id;
    return toResources([await deleteDeployment(toWrite(call), id, toDeletionScope(call))]);
  },
});

const deleted = z
  .strictObject({
    deleted: z.array(z.guid()),
    failed: z.array(z.strictObject({ deployment_id: z.guid(), detail: z.string() })),
  })
  .meta({ id: 'DeletedDeployments' });

const deleteManyRoute = defineRoute({
  ...all,
  method: 'DELETE',
  summary: 'Delete several deployments; 207 where there is none of some ids',
  access: inWorkspace('deployments:delete'),
  tracking: { operation: 'delete_deployment' },
  query: z.strictObject({ deployment_ids: ids.min(1), delete_tracing_project: deletesProject }),
  responses: { 200: deleted, 207: deleted },
  async handle(call) {
    const scope = toDeletionScope(call);
    const gone: Deleted[] = [];
    const failed: { readonly deployment_id: string; readonly detail: string }[] = [];
    // In one order, so that two such requests do not wait for each other.
    for (const id of [...new Set(call.query.deployment_ids)].toSorted())
      try {
        gone.push(await deleteDeployment(toWrite(call), id, scope));
      } catch (error) {
        if (!(error instanceof DomainError) || error.kind !== 'not_found') throw error;
        failed.push({ deployment_id: id, detail: error.message });
      }
    return {
      status: failed.length === 0 ? (200 as const) : (207 as const),
      body: { deleted: gone.map(({ id }) => id), failed },
      ...toResources(gone),
    };
  },
});

/** Of the deployments and of the tracing projects that went with them. */
function toResources(gone: readonly Deleted[]) {
  const all = gone.flatMap(({ id, name, projectId }) =>
    [id, projectId].flatMap((one) => (one === undefined ? [] : [{ id: one, name }])),
  );
  return { resources: all.map(({ id }) => id), resourceNames: all.map(({ name }) => name) };
}

export function toWrite(call: WorkspaceGrant & { readonly db: Transaction }): Write {
  const { db, workspaceId, caller } = call;
  return { db, workspaceId, actor: caller.userId ?? caller.keyId };
}

/** After a write, with the revision that it made. */
export async function outcome(
  { db, workspaceId }: { readonly db: Transaction; readonly workspaceId: string },
  id: string,
  revisionId?: string,
) {
  const body = await readDeployment(db, workspaceId, id);
  return {
    body,
    resources: [id, ...(revisionId === undefined ? [] : [revisionId])],
    resourceNames: [body.name, ...(revisionId === undefined ? [] : [''])],
  };
}
