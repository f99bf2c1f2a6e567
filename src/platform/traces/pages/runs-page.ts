// The runs of a project that a filter finds, as a table with the newest first. Pure.
import type { FoundRun } from '../trace-store.ts';
import { type Html, html } from '../../../base/html/html.ts';
import type { Links } from './page-links.ts';
import { formatDuration, formatTime, microsecondsOf } from '../../api/pages/page-time.ts';
import { hiddenWorkspace, pageLinks } from './projects-page.ts';
import { visibleText } from '../../../base/html/visible-text.ts';

export const sinceNames = ['all', '1h', '1d', '7d', '30d'] as const;
export type Since = (typeof sinceNames)[number];

const SINCE: Readonly<Record<Since, string>> = {
  all: 'All that are kept',
  '1h': 'Last hour',
  '1d': 'Last day',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
};

export type RunList = {
  readonly projectId: string;
  readonly filter: string;
  readonly shows: 'traces' | 'runs';
  readonly since: Since;
  readonly workspace: string | undefined;
  readonly problem: Html | undefined;
  readonly runs: readonly FoundRun[];
  /** Addresses of the first page and of the one after this. */
  readonly first: string | undefined;
  readonly after: string | undefined;
};

export function runsContent(list: RunList, links: Links): Html {
  const { runs, problem, first, after } = list;
  return html`${runsForm(list)}${problem}
${runs.length === 0 ? problem === undefined && html`<p class="none">No runs are found.</p>` : runsTable(runs, links)}
${pageLinks(first, after)}<p class="more"><a href="${links.exports(list.projectId)}">Exports of this project</a></p>`;
}

function runsForm({ projectId, filter, shows, since, workspace, problem }: RunList): Html {
  const option = (value: string, label: string, chosen: string): Html =>
    html`<option value="${value}"${value === chosen && html` selected`}>${label}</option>`;
  return html`<form method="get" action="/traces/${projectId}">
<input type="search" name="filter" value="${filter}" spellcheck="false" autocomplete="off" aria-label="Filter"
placeholder="Filter, for example: and(eq(run_type, &quot;llm&quot;), gt(latency, &quot;5s&quot;))"${problem !== undefined && html` aria-invalid="true" aria-describedby="problem"`}>
<select name="shows" aria-label="What is listed">${option('traces', 'Traces', shows)}${option('runs', 'All runs', shows)}</select>
<select name="since" aria-label="Since when">${sinceNames.map((name) => option(name, SINCE[name], since))}</select>
${hiddenWorkspace(workspace)}<button>Find</button></form>`;
}

function runsTable(runs: readonly FoundRun[], links: Links): Html {
  return html`<table data-keys=""><thead><tr><th>Name</th><th>Status</th><th>Started (UTC)</th><th class="number">Duration</th>
<th class="number">Tokens</th><th class="number">Cost</th><th class="wide">Input</th><th class="wide">Tags</th></tr></thead>
<tbody>${runs.map((run) => runRow(run, links))}</tbody></table>`;
}

/** Of the texts of a row. */
const MAX_NAME = 200;
const MAX_TAGS = 8;

function runRow(run: FoundRun, links: Links): Html {
  const { name, run_type: type, status, total_tokens: tokens, total_cost: cost } = run;
  return html`<tr><td class="lead"><a data-row="0" href="${links.run(run)}">${runName(name, MAX_NAME)}</a> <small>${type}</small></td>
<td class="${status} short">${status}</td><td class="short">${formatTime(run.start_time)}</td>
<td class="number" data-label="took">${durationOf(run)}</td>
<td class="number"${tokens !== null && html` data-label="tokens"`}>${tokens ?? undefined}</td>
<td class="number"${cost !== null && html` data-label="cost"`}>${formatCost(cost)}</td>
<td class="list wide mono">${run.inputs_preview === '' ? undefined : visibleText(run.inputs_preview, { max: 160 })}</td>
<td class="wide">${tagList(run.tags, MAX_TAGS)}</td></tr>`;
}

export function runName(name: string, max: number, wholeBytes?: number): Html {
  if (name === '') return html`<span class="faint">(without a name)</span>`;
  return visibleText(name, { max, ...(wholeBytes === undefined ? {} : { wholeBytes }) });
}

export function tagList(tags: readonly string[], max: number): Html {
  const more = tags.length - max;
  return html`${tags.slice(0, max).map((tag) => html`<span class="tag">${visibleText(tag, { max: 80 })}</span>`)}${more > 0 && html`<small>and ${more} more</small>`}`;
}

/** Undefined while it runs. */
export function durationOf({
  start_time,
  end_time,
}: Pick<FoundRun, 'start_time' | 'end_time'>): string | undefined {
  return end_time === null
    ? undefined
    : formatDuration(microsecondsOf(end_time) - microsecondsOf(start_time));
}

/** Without zeros at its end. */
export function formatCost(cost: string | null): string | undefined {
  return cost === null ? undefined : `$${cost.includes('.') ? cost.replace(/\.?0+$/, '') : cost}`;
}
