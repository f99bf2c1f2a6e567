// An export: what was asked for, and its runs with their states, rows, retries, errors and files. Pure.
import { type Html, html } from '../../../base/html/html.ts';
import { formatTime } from '../../api/pages/page-time.ts';
import { visibleText } from '../../../base/html/visible-text.ts';
import type { ExportRow, RunRow } from '../exports/export-reading.ts';
import { formatCount, stateOf } from './exports-page.ts';
import type { Links } from './export-links.ts';

/** `made`: the exports of a schedule. */
export function exportContent(
  row: ExportRow,
  { runs, made, links }: { readonly runs: readonly RunRow[]; readonly made?: Html; readonly links: Links },
): Html {
  return html`<dl>${factsOf(row, links)}</dl>${made}${runs.length > 0 && runsTable(runs)}`;
}

function factsOf(row: ExportRow, links: Links): readonly Html[] {
  const facts: readonly (readonly [string, Html | undefined])[] = [
    ['state', stateOf(row.status)],
    ['project', html`<a class="mono" href="${links.project(row.session_id)}">${row.session_id}</a>`],
    ['from', html`${formatTime(row.start_time)}`],
    ['to', row.end_time === null ? undefined : html`${formatTime(row.end_time)}`],
    ['every', row.interval_hours === null ? undefined : html`${row.interval_hours} h`],
    ['next export', row.next_due_at === null ? undefined : timeOf(row.next_due_at)],
    [
      'filter',
      row.filter === null ? undefined : html`<code>${visibleText(row.filter, { max: 2_000 })}</code>`,
    ],
    ['columns', row.export_fields === null ? undefined : html`${row.export_fields.join(', ')}`],
    ['format', html`${row.format_version}, ${row.compression}`],
    ['destination', html`<span class="mono">${row.destination_id}</span>`],
    [
      'made by',
      row.source_id === null
        ? undefined
        : html`<a class="mono" href="${links.export(row.source_id)}">${row.source_id}</a>`,
    ],
    ['created', timeOf(row.created_at)],
    ['ended', row.finished_at === null ? undefined : timeOf(row.finished_at)],
  ];
  return facts.flatMap(([name, value]) =>
    value === undefined ? [] : [html`<dt>${name}</dt><dd>${value}</dd>`],
  );
}

function timeOf(time: Date): Html {
  return html`${formatTime(time.toISOString())}`;
}

function runsTable(runs: readonly RunRow[]): Html {
  return html`<table><thead><tr><th>Day (UTC)</th><th>State</th><th class="number">Rows</th><th class="number">Files</th><th class="number">Retries</th>
<th class="number">Interruptions</th><th>Errors and files</th></tr></thead><tbody>${runs.map(runRow)}</tbody></table>`;
}

function runRow(run: RunRow): Html {
  const { progress } = run;
  const isWaiting = run.status === 'CREATED' && run.retry_number > 0;
  return html`<tr><td class="lead">${run.window_start.slice(0, 10)}</td>
<td class="short">${stateOf(run.status)}${isWaiting && html` <small>retry at ${timeOf(run.due_at)}</small>`}</td>
<td class="number" data-label="rows">${formatCount(rowsOf(run))}</td><td class="number" data-label="files">${progress?.files.length ?? 0}</td>
<td class="number" data-label="retries">${run.retry_number}</td><td class="number" data-label="interruptions">${run.interruptions}</td>
<td>${errorsOf(run)}${filesOf(run)}</td></tr>`;
}

/** Of an attempt at work also those of a file that is not complete. */
function rowsOf({ status, progress, rows_read: read }: RunRow): number {
  const written = progress?.rows ?? 0;
  return status === 'RUNNING' ? Math.max(written, read ?? 0) : written;
}

const MAX_ERRORS = 3;
const MAX_FILES = 20;

/** The newest last. */
function errorsOf({ errors }: RunRow): Html | false {
  const all = Object.entries(errors ?? {}).toSorted(([a], [b]) => numberOf(a) - numberOf(b));
  if (all.length === 0) return false;
  const hidden = all.length - MAX_ERRORS;
  return html`<ul class="plain">${hidden > 0 && html`<li class="faint">${hidden} before</li>`}${all
    .slice(-MAX_ERRORS)
    .map(
      ([name, message]) =>
        html`<li class="error">attempt ${numberOf(name) + 1}: ${visibleText(message, { max: 500 })}</li>`,
    )}</ul>`;
}

/** Of `retry_12`. */
function numberOf(name: string): number {
  return Number(name.slice('retry_'.length));
}

function filesOf({ progress }: RunRow): Html | false {
  const files = progress?.files ?? [];
  if (files.length === 0) return false;
  const hidden = files.length - MAX_FILES;
  return html`<details><summary>${files.length} ${files.length === 1 ? 'file' : 'files'}</summary><ul class="plain">${files
    .slice(0, MAX_FILES)
    .map(
      ({ key, rows }) =>
        html`<li class="mono">${visibleText(key, { max: 3_000 })} <small>${formatCount(rows)} rows</small></li>`,
    )}${hidden > 0 && html`<li class="faint">and ${hidden} more</li>`}</ul></details>`;
}
