// `…/revisions` of a deployment: listed, read, made, deployed again.
import { z } from '../../../base/schema.ts';
import { inWorkspace } from '../../api/access.ts';
import { createPageQuery } from '../../api/paging.ts';
import { defineRoute, type Route, UNTRACKED_READ } from '../../api/route.ts';
import { type RevisionStatus, revisionStatuses } from '../../deployments/revision-states.ts';
import { outcome, toWrite, withoutEffect } from './deployment-routes.ts';
import { newRevision, shownDeployment, shownRevision } from './deployment-schema.ts';
import { findDeployment } from './deployments.ts';
import { addRevision, redeploy, type Writing } from './deployment-writing.ts';
import { listRevisions, readRevision } from './revisions.ts';

const all = {
  path: '/v2/deployments/{deployment_id}/revisions',
  tag: 'Deployments',
  params: z.strictObject({ deployment_id: z.guid() }),
} as const;
const one = {
  path: '/v2/deployments/{deployment_id}/revisions/{revision_id}',
  tag: 'Deployments',
  params: z.strictObject({ deployment_id: z.guid(), revision_id: z.guid() }),
} as const;

export function createRevisionRoutes(writing: Writing): readonly Route[] {
  return [listRoute, createRoute(writing), readRoute, redeployRoute(writing)];
}

const LIST = new RegExp(`^(?:${revisionStatuses.join('|')})(?:,(?:${revisionStatuses.join('|')}))*$`);

const listRoute = defineRoute({
  ...all,
  method: 'GET',
  summary: 'List the revisions of a deployment, the newest first',
  access: inWorkspace('deployments:read'),
  tracking: UNTRACKED_READ,
  query: createPageQuery(20).extend({
    status: z
      .string()
      .max(256, { abort: true })
      .regex(LIST, 'Input must be statuses of revisions, separated by commas')
      .optional(),
    remote_reconciled: withoutEffect,
  }),
  responses: { 200: z.strictObject({ resources: z.array(shownRevision), offset: z.int() }) },
  failures: [404],
  async handle({ db, workspaceId, params: { deployment_id: id }, query: { status, ...page } }) {
    await findDeployment(db, workspaceId, id);
    // The schema has checked each of them.
    const statuses = status?.split(',') as readonly RevisionStatus[] | undefined;
    const resources = await listRevisions(db, workspaceId, id, { ...page, statuses });
    return { body: { resources, offset: page.offset + resources.length } };
  },
});

const createRoute = (writing: Writing): Route =>
  defineRoute({
    ...all,
    method: 'POST',
    summary: 'Make a revision; fields that are left out are those of the deployment',
    access: inWorkspace('deployments:update'),
    tracking: { operation: 'update_deployment' },
    body: newRevision,
    responses: { 201: shownRevision },
    failures: [400, 404],
    prepare: () => writing.vault.prepare(),
    async handle(call) {
      const { db, workspaceId, body } = call;
      const id = call.params.deployment_id;
      const revisionId = await addRevision(writing, toWrite(call), id, body);
      const { name } = await findDeployment(db, workspaceId, id);
      const made = await readRevision(db, workspaceId, id, revisionId);
      return { body: made, resources: [id, revisionId], resourceNames: [name, ''] };
    },
  });

const readRoute = defineRoute({
  ...one,
  method: 'GET',
  summary: 'Read a revision',
  access: inWorkspace('deployments:read'),
  tracking: UNTRACKED_READ,
  responses: { 200: shownRevision },
  failures: [404],
  async handle({ db, workspaceId, params: { deployment_id: id, revision_id: revisionId } }) {
    await findDeployment(db, workspaceId, id);
    return { body: await readRevision(db, workspaceId, id, revisionId) };
  },
});

const redeployRoute = (writing: Writing): Route =>
  defineRoute({
    ...one,
    method: 'POST',
    path: `${one.path}/redeploy`,
    summary:
      'Deploy a revision again, as a new one with the secrets of now; its build is used where it is kept',
    access: inWorkspace('deployments:update'),
    tracking: { operation: 'update_deployment' },
    body: z.object({}).optional(),
    responses: { 200: shownDeployment },
    failures: [400, 404],
    async handle(call) {
      const { deployment_id: id, revision_id: revisionId } = call.params;
      return outcome(call, id, await redeploy(writing, toWrite(call), id, revisionId));
    },
  });
