// The exchanges that have just ended: a table that the script keeps live. Without the script it shows the last ones.
import { type Html, html } from '../../base/html/html.ts';
import { adminError, type AdminResponse } from '../admin-errors.ts';
import { DRAINING_IDLE_MS } from '../records/record-routes.ts';
import type { PageContent } from './page-frame.ts';
import type { PageRequest } from './page-request.ts';
import { columns, parseRowFilter, type RecordRow } from './record-row.ts';

export function exchangesPage({ scope, query }: PageRequest): PageContent {
  const filter = query.get('filter') ?? '';
  scope.feed.begin();
  const rows = scope.feed.recent(parseRowFilter(filter)).toReversed();
  const content = html`<form method="get" action="/ui" role="search" data-filter=""><label class="grow">Filter
<input type="search" name="filter" value="${filter}" placeholder="host, path, rule, outcome, status" maxlength="256"></label>
<button data-apply="">Apply</button><button type="button" data-pause="" aria-pressed="false" hidden>Pause</button></form>
<p class="note"><span data-state="" role="status"></span> <span data-counts="">The last ${rows.length} records since somebody signed in.</span>
<a href="/ui?filter=${encodeURIComponent(filter)}" data-reload="">Reload</a></p>
<table role="table" aria-label="Exchanges, newest first" data-live=""><thead role="rowgroup"><tr role="row">${columns.map(
    (name) => html`<th role="columnheader" scope="col">${name}</th>`,
  )}</tr></thead><tbody role="rowgroup">${rows.map(tableRow)}</tbody></table>`;
  return { title: 'Exchanges', place: '/ui', content };
}

/** As the script makes it. */
function tableRow([kind, ...texts]: RecordRow): Html {
  const cells = texts.map((text, at) => {
    const name = columns[at] === 'Outcome' ? `${kind} outcome` : (columns[at]?.toLowerCase() ?? '');
    return html`<td role="cell" class="${name}"><bdi>${text}</bdi></td>`;
  });
  return html`<tr role="row" tabindex="-1">${cells}</tr>`;
}

/** How long a browser may not read: one that a person has put to sleep comes back by itself. */
const IDLE_MS = 60_000;

export function followRows({ scope, exchange, session, query }: PageRequest): AdminResponse {
  const { left, draining, closed } = exchange;
  if (!scope.readers.enter(closed)) return adminError('too_many_readers', { waitMs: 1000 });
  scope.feed.begin();
  const ends = { left: left(), draining, isOpen: () => scope.sessions.keep(session) };
  return {
    status: 200,
    fields: { 'Content-Type': 'application/x-ndjson', 'Cross-Origin-Resource-Policy': 'same-origin' },
    body: scope.feed.stream(parseRowFilter(query.get('filter') ?? ''), ends),
    idleMs: IDLE_MS,
    drainingIdleMs: DRAINING_IDLE_MS,
  };
}
