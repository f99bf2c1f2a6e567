// `/sessions`: the tracing projects of a workspace, by the public API.
import { z } from '../../../base/schema.ts';
import { inWorkspace } from '../../api/access.ts';
import { traceErrors } from '../../api/contract/error-formats.ts';
import { defineRoute, type Route, UNTRACKED_READ } from '../../api/route.ts';
import type { Reader } from '../../store/database.ts';
import { readProjectFeedbackStats } from '../feedback/feedback-stats.ts';
import type { TraceStore } from '../trace-store.ts';
import { flag, newProject, project, projectChange, projectQuery } from './project-schema.ts';
import {
  changeProject,
  createProject,
  deleteProjects,
  findProject,
  listProjects,
  noProject,
} from './projects.ts';

const all = { path: '/sessions', tag: 'Tracing projects', errors: traceErrors } as const;
const one = {
  ...all,
  path: '/sessions/{session_id}',
  params: z.strictObject({ session_id: z.guid() }),
} as const;

/** Clients read nothing of the response of a deletion. */
const nothing = z.strictObject({});

export function createProjectRoutes(store: TraceStore): readonly Route[] {
  return [createRoute, listRoute(store), readRoute(store), changeRoute, deleteRoute, deleteManyRoute];
}

const createRoute = defineRoute({
  ...all,
  method: 'POST',
  summary: 'Create a tracing project',
  access: inWorkspace('runs:create'),
  tracking: { operation: 'create_tracer_session' },
  query: z.strictObject({
    upsert: flag.default(false).describe('Change the project of this name, if there is one'),
  }),
  body: newProject,
  responses: { 200: project },
  failures: [409],
  async handle({ db, workspaceId, body, query }) {
    const id = await createProject(db, workspaceId, body, query.upsert);
    return { body: await findProject(db, workspaceId, id), resources: [id] };
  },
});

const listRoute = (store: TraceStore): Route =>
  defineRoute({
    ...all,
    method: 'GET',
    summary: 'List the tracing projects of the workspace',
    access: inWorkspace('runs:read'),
    tracking: UNTRACKED_READ,
    query: projectQuery,
    responses: { 200: z.array(project) },
    failures: [408],
    async handle({ db, workspaceId, query }) {
      const projects = await listProjects(db, workspaceId, query);
      return { body: query.include_stats ? await withStats(store, db, projects) : projects };
    },
  });

const readRoute = (store: TraceStore): Route =>
  defineRoute({
    ...one,
    method: 'GET',
    summary: 'Read a tracing project',
    access: inWorkspace('runs:read'),
    tracking: UNTRACKED_READ,
    query: z.strictObject({ include_stats: flag.default(false) }),
    responses: { 200: project },
    failures: [404, 408],
    async handle({ db, workspaceId, params: { session_id: id }, query }) {
      const found = await findProject(db, workspaceId, id);
      const [shown = found] = query.include_stats ? await withStats(store, db, [found]) : [];
      return { body: shown };
    },
  });

/** Projects of one workspace. */
async function withStats<P extends { readonly id: string; readonly tenant_id: string }>(
  store: TraceStore,
  db: Reader,
  projects: readonly P[],
) {
  const ids = projects.map(({ id }) => id);
  const workspaceId = projects[0]?.tenant_id ?? '';
  const stats = await store.readProjectStats(db, { workspaceId, ids });
  const feedback = await readProjectFeedbackStats(db, workspaceId, ids);
  return projects.map((found) => ({
    ...{ ...found, ...stats.get(found.id) },
    feedback_stats: feedback.get(found.id) ?? {},
  }));
}

const changeRoute = defineRoute({
  ...one,
  method: 'PATCH',
  summary: 'Change a tracing project',
  access: inWorkspace('runs:create'),
  tracking: { operation: 'update_tracer_session' },
  body: projectChange,
  responses: { 200: project },
  failures: [404, 409],
  async handle({ db, workspaceId, params: { session_id: id }, body }) {
    await changeProject(db, { workspaceId, id }, body);
    return { body: await findProject(db, workspaceId, id), resources: [id] };
  },
});

const deleteRoute = defineRoute({
  ...one,
  method: 'DELETE',
  summary: 'Delete a tracing project with its runs',
  access: inWorkspace('projects:delete'),
  tracking: { operation: 'delete_tracer_session' },
  responses: { 200: nothing },
  failures: [404],
  async handle({ db, workspaceId, params: { session_id: id } }) {
    const resources = await deleteProjects(db, workspaceId, [id]);
    if (resources.length === 0) throw noProject();
    return { body: {}, resources };
  },
});

const deleteManyRoute = defineRoute({
  ...all,
  method: 'DELETE',
  summary: 'Delete tracing projects with their runs',
  access: inWorkspace('projects:delete'),
  tracking: { operation: 'delete_tracer_sessions' },
  query: z.strictObject({ session_ids: z.array(z.guid()).min(1).max(100) }),
  responses: { 200: nothing },
  failures: [404],
  async handle({ db, workspaceId, query: { session_ids: ids } }) {
    const resources = await deleteProjects(db, workspaceId, ids);
    if (resources.length < new Set(ids.map((id) => id.toLowerCase())).size) throw noProject();
    return { body: {}, resources };
  },
});
