// The exports of a workspace, as a table with what has come of their runs. Pure.
import { type Html, html } from '../../../base/html/html.ts';
import { formatTime } from '../../api/pages/page-time.ts';
import type { countRuns, ExportRow } from '../exports/export-reading.ts';
import type { Links } from './export-links.ts';

type Counts = Awaited<ReturnType<typeof countRuns>> extends ReadonlyMap<string, infer C> ? C : never;
export type ListedExport = { readonly row: ExportRow; readonly runs: Counts | undefined };
export type Around = {
  readonly links: Links;
  /** In place of the table. */
  readonly none: string;
  /** Addresses of the pages before and after this one. */
  readonly before: string | undefined;
  readonly after: string | undefined;
};

export function exportsContent(list: readonly ListedExport[], { links, none, before, after }: Around): Html {
  if (list.length === 0) return html`<p class="none">${none}</p>`;
  const rows = list.map(({ row, runs }) => exportRow(row, runs, links));
  return html`<table data-keys=""><thead><tr><th>Created (UTC)</th><th>State</th><th>From</th><th>To</th>
<th class="number">Runs</th><th class="number">Rows</th><th class="number">Retries</th><th>Project</th><th class="wide">Format</th></tr></thead><tbody>${rows}</tbody></table>
<p class="more">${before !== undefined && html`<a rel="prev" href="${before}">Newer</a>`}${after !== undefined && html`<a rel="next" href="${after}">Older</a>`}</p>`;
}

function exportRow(row: ExportRow, runs: Counts | undefined, links: Links): Html {
  const end =
    row.end_time === null ? html`every ${row.interval_hours ?? 0} h` : html`${formatTime(row.end_time)}`;
  return html`<tr><td class="lead"><a data-row="0" href="${links.export(row.id)}">${formatTime(row.created_at.toISOString())}</a></td>
<td class="short">${stateOf(row.status)}</td><td class="short" data-label="from">${formatTime(row.start_time)}</td><td class="short" data-label="to">${end}</td>
<td class="number" data-label="runs">${runs && html`${runs.completed} of ${runs.runs}`}</td><td class="number" data-label="rows">${runs && formatCount(runs.rows)}</td>
<td class="number" data-label="retries">${runs && formatCount(runs.retries)}</td><td class="short" data-label="project"><a class="mono" href="${links.project(row.session_id)}" title="${row.session_id}">${row.session_id.slice(0, 8)}</a></td><td class="wide">${row.compression}, ${row.format_version}</td></tr>`;
}

const CLASSES: Readonly<Record<string, string>> = {
  ...{ COMPLETED: 'success', RUNNING: 'pending', CREATED: 'pending' },
  ...{ FAILED: 'error', TIMEDOUT: 'error' },
};

export function stateOf(status: string): Html {
  return html`<span class="${CLASSES[status] ?? 'faint'}">${status}</span>`;
}

/** `1 234 567` */
export function formatCount(count: number): string {
  return String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, '\u00a0');
}
