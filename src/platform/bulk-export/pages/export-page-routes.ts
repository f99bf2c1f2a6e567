// `/exports`: pages to look at bulk exports and their runs, for whoever is signed in.
import { z } from '../../../base/schema.ts';
import { type Html, html } from '../../../base/html/html.ts';
import { onPage } from '../../api/pages/page-access.ts';
import { frameErrors, pageFields, pageText } from '../../api/pages/page-frame.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { countRuns, findExport, listExports, listRuns } from '../exports/export-reading.ts';
import { isFinal } from '../exports/export-states.ts';
import { exportContent } from './export-page.ts';
import { exportsContent } from './exports-page.ts';
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

const listRoute = defineRoute({
  ...shared,
  path: '/exports',
  summary: 'The bulk exports of the workspace (HTML)',
  tracking: { operation: 'list_bulk_exports' },
  query: z.object({ workspace, offset: z.int().min(0).max(MAX_OFFSET).default(0) }),
  responses: { 200: HTML },
  async handle({ db, workspaceId, query: { offset, workspace: named } }) {
    const found = await listExports(db, workspaceId, { limit: EXPORTS_OF_PAGE + 1, offset });
    const shown = found.slice(0, EXPORTS_OF_PAGE);
    const counts = await countRuns(
      db,
      workspaceId,
      shown.map(({ id }) => id),
    );
    const links = createLinks(named);
    const content = exportsContent(
      shown.map((row) => ({ row, runs: counts.get(row.id) })),
      {
        links,
        before: offset === 0 ? undefined : links.exports(Math.max(0, offset - EXPORTS_OF_PAGE)),
        after: found.length > EXPORTS_OF_PAGE ? links.exports(offset + EXPORTS_OF_PAGE) : undefined,
      },
    );
    return pageOf(
      ['Exports', [html`Exports`], content],
      shown.some(({ status }) => status === 'RUNNING'),
    );
  },
});

const exportRoute = defineRoute({
  ...shared,
  path: '/exports/{bulk_export_id}',
  summary: 'A bulk export: its runs with their states, rows, retries, errors and files (HTML)',
  tracking: { operation: 'get_bulk_export_runs' },
  params: z.strictObject({ bulk_export_id: z.guid() }),
  query: z.object({ workspace }),
  responses: { 200: HTML },
  failures: [404],
  async handle({ db, workspaceId, params: { bulk_export_id: id }, query }) {
    const row = await findExport(db, workspaceId, id);
    const runs = await listRuns(db, workspaceId, id);
    const links = createLinks(query.workspace);
    const path = [exportsLink(links), html`<small class="mono">${id}</small>`];
    const isOpen = !isFinal(row.status) && row.status !== 'INTERVALSCHEDULED';
    return { ...pageOf(['Export', path, exportContent(row, runs, links)], isOpen), resources: [id] };
  },
});

export const exportPageRoutes: readonly Route[] = [listRoute, exportRoute];

function exportsLink(links: Links): Html {
  return html`<a href="${links.exports()}">Exports</a>`;
}

function pageOf([title, path, content]: readonly [string, readonly Html[], Html], isOpen: boolean) {
  const fields = isOpen ? { ...pageFields, Refresh: String(REFRESH_SECONDS) } : pageFields;
  return { body: pageText({ title, path, content }), fields };
}
