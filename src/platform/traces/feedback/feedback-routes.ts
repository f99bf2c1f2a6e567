// `/feedback`: what people and programs say of runs, by the public API.
import { z } from '../../../base/schema.ts';
import { DomainError } from '../../../base/domain-error.ts';
import { inWorkspace } from '../../api/access.ts';
import { traceErrors } from '../../api/contract/error-formats.ts';
import { defineRoute, resourceOutcome, type Route } from '../../api/route.ts';
import type { Database } from '../../store/database.ts';
import type { TraceMeters } from '../trace-meters.ts';
import type { TraceStore } from '../trace-store.ts';
import { changeFeedback, deleteFeedback, findFeedback, listFeedback, saveFeedback } from './feedback.ts';
import { feedback, feedbackChange, feedbackQuery, type NewFeedback, newFeedback } from './feedback-schema.ts';

const all = { path: '/feedback', tag: 'Runs', errors: traceErrors } as const;
const one = {
  ...all,
  path: '/feedback/{feedback_id}',
  params: z.strictObject({ feedback_id: z.guid() }),
} as const;
/** Texts are those of users and models: what cannot be stored is replaced. */
const bodyRules = { isStorable: false } as const;
const tracking = { untracked: 'the tracked operations have no writing of feedback' } as const;

export function createFeedbackRoutes(
  store: TraceStore,
  meters: Pick<TraceMeters, 'onFeedback'>,
): readonly Route[] {
  return [createRoute(store, meters), listRoute, readRoute, changeRoute, deleteRoute];
}

const createRoute = (store: TraceStore, meters: Pick<TraceMeters, 'onFeedback'>): Route =>
  defineRoute({
    ...{ ...all, tracking, bodyRules },
    method: 'POST',
    summary: 'Give feedback about a run, a trace or a project',
    access: inWorkspace('runs:create'),
    body: newFeedback,
    responses: { 200: feedback },
    failures: [404],
    async handle({ db, workspaceId, body }) {
      await requireProject(db, workspaceId, body);
      const [id = ''] = await saveFeedback(db, workspaceId, [body], store);
      return { body: await findFeedback(db, workspaceId, id) };
    },
    after: () => meters.onFeedback(),
  });

/** Feedback about a run belongs to the project of the run, which may come later than its feedback. */
async function requireProject(db: Database, workspaceId: string, given: NewFeedback): Promise<void> {
  const { run_id: runId, trace_id: traceId, session_id: id } = given;
  if (!id || runId || traceId) return;
  const projects = db.selectFrom('trace_projects').select('id').where('workspace_id', '=', workspaceId);
  if ((await projects.where('id', '=', id).executeTakeFirst()) === undefined)
    throw new DomainError('not_found', 'There is no project with the id `session_id` in this workspace');
}

const listRoute = defineRoute({
  ...all,
  method: 'GET',
  summary: 'List the feedback of the workspace',
  access: inWorkspace('runs:read'),
  tracking: { operation: 'read_feedbacks' },
  query: feedbackQuery,
  responses: { 200: z.array(feedback) },
  failures: [408],
  prepare: ({ db, workspaceId, query }) => listFeedback(db, workspaceId, query),
  handle: async (_, body) => ({ body }),
});

const readRoute = defineRoute({
  ...one,
  method: 'GET',
  summary: 'Read feedback',
  access: inWorkspace('runs:read'),
  tracking: { operation: 'read_feedback' },
  responses: { 200: feedback },
  failures: [404],
  async handle({ db, workspaceId, params: { feedback_id: id } }) {
    return resourceOutcome(await findFeedback(db, workspaceId, id));
  },
});

const changeRoute = defineRoute({
  ...{ ...one, tracking, bodyRules },
  method: 'PATCH',
  summary: 'Change feedback',
  access: inWorkspace('runs:create'),
  body: feedbackChange,
  responses: { 200: feedback },
  failures: [404],
  async handle({ db, workspaceId, params: { feedback_id: id }, body }) {
    return { body: await changeFeedback(db, { workspaceId, id }, body) };
  },
});

const deleteRoute = defineRoute({
  ...{ ...one, tracking },
  method: 'DELETE',
  summary: 'Delete feedback',
  access: inWorkspace('runs:create'),
  responses: { 200: z.strictObject({}) },
  failures: [404],
  async handle({ db, workspaceId, params: { feedback_id: id } }) {
    await deleteFeedback(db, workspaceId, id);
    return { body: {} };
  },
});
