// The rules and callbacks in force, in the order in which they are tried.
import { type Html, html } from '../../base/html/html.ts';
import { visibleText } from '../../base/html/visible-text.ts';
import { alert, type PageContent } from './page-frame.ts';
import type { PageRequest } from './page-request.ts';
import type { ShownEntry, ShownRules } from './page-target.ts';
import { noSandbox, sandboxChoice } from './sandbox-choice.ts';

const MAX_ENTRIES = 500;
const MAX_PATTERNS = 20;
const MAX_CHARS = 256;

export function rulesPage({ page, query }: PageRequest): PageContent {
  const sandbox = query.get('sandbox') ?? 'default';
  const shown = page.rules(sandbox);
  const choice = sandboxChoice(page, sandbox);
  const chooser = choice && html`<form method="get" action="/ui/rules">${choice}<button>Show</button></form>`;
  const content = html`${chooser}${shown === undefined ? alert(noSandbox(page)) : tables(shown)}`;
  return { status: shown === undefined ? 404 : 200, title: 'Rules', place: '/ui/rules', content };
}

function tables({ revision, rules, callbacks }: ShownRules): Html {
  return html`<p class="note">Revision ${revision}. The first rule whose host and path match decides. A callback is asked only for hosts that
no rule names. Disabled entries are not shown. Requests
are counted by name since the start, over all sandboxes of the process.</p>${table('Rules', 'Headers', rules)}${table('Callbacks', 'Endpoint', callbacks)}`;
}

function table(title: string, gives: string, entries: readonly ShownEntry[]): Html {
  if (entries.length === 0) return html`<h2>${title}</h2><p class="none">There are none.</p>`;
  const rows = entries.slice(0, MAX_ENTRIES).map(
    (entry) => html`<tr><td class="lead">${visibleText(entry.name, { max: MAX_CHARS })}</td>
<td data-label="Hosts">${lines(entry.hosts)}</td><td data-label="Paths">${entry.paths.length === 0 ? 'all' : lines(entry.paths)}</td>
<td data-label="${gives}">${lines(entry.gives)}</td><td class="short" data-label="Requests">${entry.requests.length === 0 ? '0' : lines(entry.requests)}</td></tr>`,
  );
  const rest = entries.length - MAX_ENTRIES;
  return html`<h2>${title}</h2><table><thead><tr><th scope="col">Name</th><th scope="col">Hosts</th><th scope="col">Paths</th>
<th scope="col">${gives}</th><th scope="col">Requests</th></tr></thead><tbody>${rows}</tbody></table>${rest > 0 && html`<p class="note">${rest} more are not shown.</p>`}`;
}

function lines(texts: readonly string[]): Html {
  const shown = texts.slice(0, MAX_PATTERNS);
  const items = shown.map(
    (text) => html`<span class="lines mono">${visibleText(text, { max: MAX_CHARS })}</span>`,
  );
  const rest = texts.length - shown.length;
  return html`${items}${rest > 0 && html`<span class="lines faint">and ${rest} more</span>`}`;
}
