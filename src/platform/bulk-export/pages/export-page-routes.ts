// `/exports`: pages to look at bulk exports and their runs, for whoever is signed in.
import { z } from '../../../base/schema.ts';
import { type Html, html } from '../../../base/html/html.ts';
import { onPage } from '../../api/pages/page-access.ts';
import { frameErrors, pageFields, pageText } from '../../api/pages/page-frame.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Reader } from '../../store/database.ts';
import { countRuns, findExport, listExports, listRuns } from '../exports/export-reading.ts';
import { isFinal } from '../exports/export-states.ts';
import { exportContent } from './export-page.ts';
import { type Around, exportsContent, type ListedExport } from './exports-page.ts';
import { createLinks, type Links } from './export-links.ts';

const shared = {
  tag: 'Pages of bulk exports',
  method: 'GET',
  access: onPage('exports:read'),
  errors: frameErrors({ title: 'Exports', address: '/exports', shows: 'bulk exports' }),
  limits: { running: { total: 64, perCaller: 4 } },
} as const;
const HTML = { textType: 'text/html' } as const;
const workspace = z.string().max(64).optional().describe('The workspace, where the key has no home');

/** Of a page that changes by itself. */
const REFRESH_SECONDS = 5;
const EXPORTS_OF_PAGE = 50;
const MAX_OFFSET = 100_000;

const offset = z.int().min(0).max(MAX_OFFSET).default(0);

const listRoute = defineRoute({
  ...shared,
  path: '/exports',
  summary: 'The bulk exports of the workspace, or of a tracing project (HTML)',
  tracking: { operation: 'list_bulk_exports' },
  query: z.object({ workspace, offset, session_id: z.guid().optional().describe('The tracing project') }),
  responses: { 200: HTML },
  async handle({ db, workspaceId, query: { offset: from, workspace: named, session_id: projectId } }) {
    const links = createLinks(named);
    const list = await readList({ db, workspaceId }, { offset: from, projectId });
    const content = exportsContent(list.shown, {
      ...{ links, none: projectId === undefined ? NONE : NONE_OF_PROJECT },
      ...around(list, from, (to) => links.exports({ offset: to, projectId })),
    });
    const projects = html`<p class="more"><a href="${links.projects()}">Traces</a></p>`;
    const path =
      projectId === undefined
        ? [html`Exports`]
        : [exportsLink(links), html`<a class="mono" href="${links.project(projectId)}">${projectId}</a>`];
    return pageOf(['Exports', path, html`${content}${projects}`], list.isOpen);
  },
});

const NONE = 'This workspace has no exports yet: POST /api/v1/bulk-exports creates one.';
const NONE_OF_PROJECT = 'This project has no exports yet: POST /api/v1/bulk-exports creates one.';
const NONE_MADE = 'This schedule has made no exports yet.';

const exportRoute = defineRoute({
  ...shared,
  path: '/exports/{bulk_export_id}',
  summary:
    'A bulk export: its runs with their states, rows, retries, errors and files, or the exports that a schedule has made (HTML)',
  tracking: { operation: 'get_bulk_export_runs' },
  params: z.strictObject({ bulk_export_id: z.guid() }),
  query: z.object({ workspace, offset: offset.describe('Of the exports that a schedule has made') }),
  responses: { 200: HTML },
  failures: [404],
  async handle({ db, workspaceId, params: { bulk_export_id: id }, query }) {
    const row = await findExport(db, workspaceId, id);
    const runs = await listRuns(db, workspaceId, id);
    const links = createLinks(query.workspace);
    const list = row.interval_hours === null ? undefined : await readMade({ db, workspaceId }, id, query);
    const made =
      list &&
      exportsContent(list.shown, {
        ...{ links, none: NONE_MADE },
        ...around(list, query.offset, (to) => links.export(id, to)),
      });
    const path = [exportsLink(links), html`<small class="mono">${id}</small>`];
    const isOpen = list?.isOpen ?? !isFinal(row.status);
    const content = exportContent(row, { runs, links, ...(made === undefined ? {} : { made }) });
    return { ...pageOf(['Export', path, content], isOpen), resources: [id] };
  },
});

type Reading = { readonly db: Reader; readonly workspaceId: string };
type List = {
  readonly shown: readonly ListedExport[];
  readonly hasMore: boolean;
  /** Whether the page changes by itself. */
  readonly isOpen: boolean;
};

const readMade = (reading: Reading, sourceId: string, { offset: from }: { readonly offset: number }) =>
  readList(reading, { offset: from, sourceId });

async function readList(
  { db, workspaceId }: Reading,
  by: {
    readonly offset: number;
    readonly projectId?: string | undefined;
    readonly sourceId?: string | undefined;
  },
): Promise<List> {
  const found = await listExports(db, workspaceId, { ...by, limit: EXPORTS_OF_PAGE + 1 });
  const rows = found.slice(0, EXPORTS_OF_PAGE);
  const ids = rows.map(({ id }) => id);
  const counts = await countRuns(db, workspaceId, ids);
  return {
    shown: rows.map((row) => ({ row, runs: counts.get(row.id) })),
    hasMore: found.length > EXPORTS_OF_PAGE,
    isOpen: rows.some(({ status }) => status === 'RUNNING'),
  };
}

function around(
  { hasMore }: List,
  from: number,
  addressOf: (offset: number) => string,
): Pick<Around, 'before' | 'after'> {
  return {
    before: from === 0 ? undefined : addressOf(Math.max(0, from - EXPORTS_OF_PAGE)),
    after: hasMore ? addressOf(from + EXPORTS_OF_PAGE) : undefined,
  };
}

export const exportPageRoutes: readonly Route[] = [listRoute, exportRoute];

function exportsLink(links: Links): Html {
  return html`<a href="${links.exports()}">Exports</a>`;
}

function pageOf([title, path, content]: readonly [string, readonly Html[], Html], isOpen: boolean) {
  const fields = isOpen ? { ...pageFields, Refresh: String(REFRESH_SECONDS) } : pageFields;
  return { body: pageText({ title, path, content }), fields };
}
