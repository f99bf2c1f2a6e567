// `/traces`: pages to look at projects, runs and traces, for whoever is signed in. What they show is read before the transaction, which
// has the event alone.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { byteStream } from '../../api/responses.ts';
import { defineRoute, type Route, UNTRACKED_READ } from '../../api/route.ts';
import { downloadFields } from '../artifacts/attachment-route.ts';
import { findProject, listProjects } from '../projects/projects.ts';
import { unpackInPieces } from '../runs/payload.ts';
import type { FoundRun, PayloadField, TraceStore } from '../trace-store.ts';
import { type Html, html } from '../../../base/html/html.ts';
import { onPage } from '../../api/pages/page-access.ts';
import { frameErrors, pageFields, pageText } from '../../api/pages/page-frame.ts';
import { createLinks, type Links } from './page-links.ts';
import { projectsContent } from './projects-page.ts';
import { runsContent, sinceNames } from './runs-page.ts';
import { findRunList } from './run-list-reading.ts';
import { traceContent } from './trace-page.ts';
import { findRun, readTrace } from './trace-reading.ts';
import { visibleText } from '../../../base/html/visible-text.ts';

const shared = {
  tag: 'Pages of traces',
  method: 'GET',
  access: onPage('runs:read'),
  errors: frameErrors({ title: 'Traces', address: '/traces', shows: 'traces' }),
  // In all more than one organization may have, so that others find a place.
  limits: { running: { total: 256, perCaller: 8 } },
} as const;
const HTML = { textType: 'text/html' } as const;
const workspace = z.string().max(64).optional().describe('The workspace, where the key has no home');
const sessionId = z.guid();
/** Clients choose it. */
const runId = z
  .string()
  .regex(/^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/)
  .transform((id) => id.toLowerCase());

export function createPageRoutes(store: TraceStore): readonly Route[] {
  return [projectsRoute, runsRoute(store), traceRoute(store), rawRoute(store)];
}

const PROJECTS_OF_PAGE = 50;
const MAX_OFFSET = 10_000;

const projectsRoute = defineRoute({
  ...shared,
  path: '/traces',
  summary: 'The tracing projects of the workspace (HTML)',
  tracking: UNTRACKED_READ,
  query: z.object({
    ...{ workspace, name: z.string().max(512).default('').describe('Part of their names') },
    offset: z.int().min(0).max(MAX_OFFSET).default(0),
  }),
  responses: { 200: HTML },
  async handle({ db, workspaceId, query }) {
    const { name, offset } = query;
    const found = await listProjects(db, workspaceId, {
      ...{ offset, limit: PROJECTS_OF_PAGE + 1, include_stats: false },
      ...{ sort_by: 'last_run_start_time', sort_by_desc: true },
      ...(name === '' ? {} : { name_contains: name }),
    });
    const links = createLinks(query.workspace);
    const at = (place: number): string => {
      const search = new URLSearchParams({ name, offset: String(place), workspace: query.workspace ?? '' });
      return `/traces?${search.toString()}`;
    };
    const content = projectsContent(
      {
        ...{ projects: found.slice(0, PROJECTS_OF_PAGE), name, workspace: query.workspace },
        before: offset === 0 ? undefined : at(Math.max(0, offset - PROJECTS_OF_PAGE)),
        after:
          found.length > PROJECTS_OF_PAGE && offset + PROJECTS_OF_PAGE <= MAX_OFFSET
            ? at(offset + PROJECTS_OF_PAGE)
            : undefined,
      },
      links,
    );
    return pageOf('Traces', [html`Traces`], content);
  },
});

const runsRoute = (store: TraceStore): Route =>
  defineRoute({
    ...shared,
    path: '/traces/{session_id}',
    summary: 'The runs of a tracing project (HTML)',
    tracking: { operation: 'query_runs' },
    params: z.strictObject({ session_id: sessionId }),
    query: z.object({
      workspace,
      filter: z.string().max(8_192).default('').describe('In the filter language'),
      shows: z.enum(['traces', 'runs']).default('traces'),
      since: z.enum(sinceNames).default('all'),
      after: z.string().max(512).optional().describe('Of a link to the next page'),
    }),
    responses: { 200: HTML },
    failures: [404, 408],
    async prepare({ db, workspaceId, params, query }) {
      const project = await findProject(db, workspaceId, params.session_id);
      const list = await findRunList(store, db, workspaceId, { projectId: project.id, ...query });
      const links = createLinks(query.workspace);
      const path = [tracesLink(links), visibleText(project.name, { max: 200 })];
      return pageOf('Runs', path, runsContent(list, links));
    },
    handle: async ({ params }, page) => ({ ...page, resources: [params.session_id] }),
  });

const traceRoute = (store: TraceStore): Route =>
  defineRoute({
    ...shared,
    path: '/traces/{session_id}/{trace_id}',
    summary: 'A trace: the tree of its runs (HTML)',
    tracking: { operation: 'query_trace' },
    params: z.strictObject({ session_id: sessionId, trace_id: runId }),
    query: z.object({ workspace, run: runId.optional().describe('That is shown; the root when absent') }),
    responses: { 200: HTML },
    failures: [404, 408],
    async prepare({ db, workspaceId, params, query }) {
      const trace = await readTrace({ store, db, workspaceId }, params.trace_id, query.run);
      // Not that of the address: a run may come into another project after its address was written.
      const project = await findProject(db, workspaceId, trace.chosen.run.session_id);
      const links = createLinks(query.workspace);
      const path = [
        tracesLink(links),
        html`<a href="${links.project(project.id)}">${visibleText(project.name, { max: 200 })}</a>`,
        html`<small class="mono">${params.trace_id}</small>`,
      ];
      return { page: pageOf('Trace', path, traceContent(trace, links)), runId: trace.chosen.run.id };
    },
    handle: async (_, { page, runId: id }) => ({ ...page, resources: [id] }),
  });

const rawRoute = (store: TraceStore): Route =>
  defineRoute({
    ...shared,
    path: '/traces/runs/{run_id}/{field}',
    summary: 'A value of a run as it was sent (download)',
    tracking: { operation: 'read_run' },
    params: z.strictObject({
      run_id: runId,
      field: z.enum(['inputs', 'outputs', 'extra', 'events', 'serialized', 'error']),
    }),
    query: z.object({ workspace }),
    responses: { 200: byteStream<Raw>('application/json', { schema: z.unknown(), heldBytes: 1024 * 1024 }) },
    failures: [404, 408],
    async prepare({ db, workspaceId, params: { run_id: id, field } }) {
      const run = await findRun({ store, db, workspaceId }, id);
      if (run === undefined || run.sizes[field] === null)
        throw new DomainError('not_found', 'This workspace has no such run, or the run has no such value');
      return { run, field };
    },
    handle: async (_, source) => ({
      source,
      resources: [source.run.id],
      fields: downloadFields({
        name: `${source.run.id}-${source.field}.json`,
        mime_type: 'application/json',
      }),
    }),
    stream: ({ db, workspaceId }, { run, field }) =>
      unpackInPieces(store.readPayload(db, { workspaceId, run, field })),
  });

type Raw = { readonly run: FoundRun; readonly field: PayloadField };

function tracesLink(links: Links): Html {
  return html`<a href="${links.projects()}">Traces</a>`;
}

function pageOf(title: string, path: readonly Html[], content: Html) {
  return { body: pageText({ title, path, content }), fields: pageFields };
}
