// `/v1/projects/{project_id}/…_logs`: the lines of builds and of what runs. A project has the id of its deployment.
import { z } from '../../../base/schema.ts';
import { inWorkspace } from '../../api/access.ts';
import { defineRoute, type Route, UNTRACKED_READ } from '../../api/route.ts';
import { type LogQuery, queryLogs } from '../../deployments/deployment-logs.ts';
import { logLevels } from '../../deployments/log-lines.ts';
import type { Database } from '../../store/database.ts';
import { findDeployment } from '../deployments/deployments.ts';
import { findRevision } from '../deployments/revisions.ts';

const optional = <T extends z.ZodType>(schema: T) => schema.nullable().optional();
/** Clients send back what they have read: a text, or milliseconds since 1970. */
const time = optional(
  z.union([z.iso.datetime({ offset: true }), z.number().min(0).max(253_402_300_799_999)]),
);

const MAX_LINES = 1_000;
/** Of the messages of one page: many clients may read theirs slowly, and each page is held as long. */
const MAX_PAGE_BYTES = 1024 * 1024;

const wanted = z.object({
  limit: optional(z.int().min(1).max(MAX_LINES)).describe('50 without it'),
  order: optional(z.enum(['asc', 'desc'])).describe('By the time at which they were stored; asc without it'),
  offset: optional(
    z
      .string()
      .max(20, { abort: true })
      .regex(/^\d{1,18}$/, 'Input must be the next_offset of the page before'),
  ),
  level: optional(z.enum(logLevels)).describe('This one and those above it'),
  query: optional(z.string().max(1_024)).describe('A part of the message'),
  start_time: time,
  end_time: time,
});

const lines = z
  .strictObject({
    logs: z.array(
      z.strictObject({
        id: z.string(),
        timestamp: z.iso.datetime(),
        level: z.enum(logLevels),
        message: z.string(),
      }),
    ),
    next_offset: z.string().nullable().describe('The offset of the next page; null: there is none yet'),
  })
  .meta({ id: 'DeploymentLogs' });

const project = z.strictObject({ project_id: z.guid() });
const revision = project.extend({ revision_id: z.guid() });

const shared = {
  tag: 'Deployments',
  method: 'POST',
  access: inWorkspace('deployments:read'),
  tracking: UNTRACKED_READ,
  // Public, although they are below /v1.
  unknownNames: 'pass',
  body: wanted,
  responses: { 200: lines },
  failures: [404],
} as const;

export const logRoutes: readonly Route[] = [
  ofRevision('build'),
  ofRevision('deploy'),
  defineRoute({
    ...shared,
    path: '/v1/projects/{project_id}/deploy_logs',
    summary: 'Read the lines that a deployment has written, of all its revisions',
    params: project,
    async handle({ db, workspaceId, params: { project_id: deploymentId }, body }) {
      await findDeployment(db, workspaceId, deploymentId);
      return { body: await readPage(db, { workspaceId, deploymentId, kind: 'deploy' }, body) };
    },
  }),
];

function ofRevision(kind: LogQuery['kind']): Route {
  return defineRoute({
    ...shared,
    path: `/v1/projects/{project_id}/revisions/{revision_id}/${kind}_logs`,
    summary: `Read the lines that the ${kind === 'build' ? 'build' : 'instances'} of a revision ${kind === 'build' ? 'has' : 'have'} written`,
    params: revision,
    async handle({ db, workspaceId, params, body }) {
      const { project_id: deploymentId, revision_id: revisionId } = params;
      await findDeployment(db, workspaceId, deploymentId);
      await findRevision(db, workspaceId, deploymentId, revisionId);
      return { body: await readPage(db, { workspaceId, deploymentId, revisionId, kind }, body) };
    },
  });
}

type Place = Pick<LogQuery, 'workspaceId' | 'deploymentId' | 'revisionId' | 'kind'>;

async function readPage(db: Database, place: Place, given: z.output<typeof wanted>) {
  const limit = given.limit ?? 50;
  const rows = await queryLogs(db, {
    ...place,
    ...{ limit, maxBytes: MAX_PAGE_BYTES, order: given.order ?? 'asc', after: given.offset ?? undefined },
    ...{ level: given.level ?? undefined, text: given.query || undefined },
    ...{ from: toDate(given.start_time), to: toDate(given.end_time) },
  });
  const page = rows.slice(0, limit);
  const bytes = page.reduce((sum, { message }) => sum + Buffer.byteLength(message), 0);
  const hasMore = rows.length > limit || bytes >= MAX_PAGE_BYTES;
  return {
    logs: page.map(({ id, at, level, message }) => ({ id, timestamp: at, level, message })),
    next_offset: hasMore ? (page.at(-1)?.id ?? null) : null,
  };
}

function toDate(value: string | number | null | undefined): Date | undefined {
  return value === null || value === undefined ? undefined : new Date(value);
}
