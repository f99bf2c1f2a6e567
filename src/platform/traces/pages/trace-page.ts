// One trace: the tree of its runs with their times, and beside it the run that is chosen. Pure.
import type { FoundRun, PayloadField } from '../trace-store.ts';
import { type Html, html } from '../../../base/html/html.ts';
import { layOutJson } from './json-layout.ts';
import type { Links } from './page-links.ts';
import { formatDuration, formatTime, microsecondsOf } from '../../api/pages/page-time.ts';
import { durationOf, formatCost, runName, tagList } from './runs-page.ts';
import type { TreeRow, TreeRun } from './run-tree.ts';
import { formatBytes, visibleText } from '../../../base/html/visible-text.ts';

export type ShownPayload = {
  /** The JSON, or its beginning. */
  readonly text: string;
  readonly isWhole: boolean;
  /** Of the whole JSON; undefined where it was not counted. */
  readonly bytes: number | undefined;
};

export type ShownAttachment = {
  readonly name: string;
  readonly mime_type: string;
  readonly size: number;
  readonly address: string;
};

export type ShownFeedback = {
  readonly key: string;
  readonly score: number | null;
  /** The beginnings of its texts, and the bytes that the whole ones have. */
  readonly value: string | null;
  readonly value_bytes: number | null;
  readonly comment: string | null;
  readonly comment_bytes: number | null;
};

export type ChosenRun = {
  readonly run: FoundRun;
  readonly payloads: ReadonlyMap<PayloadField, ShownPayload>;
  readonly attachments: readonly ShownAttachment[];
  readonly feedback: readonly ShownFeedback[];
};

export type Trace = {
  readonly rows: readonly TreeRow[];
  /** Of more runs than are shown. */
  readonly isCut: boolean;
  readonly chosen: ChosenRun;
};

export function traceContent({ rows, isCut, chosen }: Trace, links: Links): Html {
  const more =
    isCut && html`<p class="faint">These are the first ${rows.length} runs of the trace, by their start.</p>`;
  return html`<div class="trace"><nav class="tree" aria-label="Runs of the trace">${summary(rows)}<ol data-keys="">${rows.map((row) => treeRow(row, chosen.run.id, links))}</ol>${more}</nav>
<section id="run" aria-label="Run">${runDetails(chosen, links)}</section></div>`;
}

const MAX_INDENT = 11;
const MAX_NAME = 120;

function treeRow({ run, depth, isOrphan, from, width }: TreeRow, chosen: string, links: Links): Html {
  const took = durationOf(run) ?? 'running';
  return html`<li><a data-row="${depth}" href="${links.run(run)}#run"${run.id === chosen && html` aria-current="true"`}>
<span class="what d${Math.min(depth, MAX_INDENT)}">${isOrphan && html`<small title="The parent of this run was not received">⋯ </small>`}<span class="${run.status === 'success' ? '' : run.status}">${runName(run.name, MAX_NAME, run.nameBytes)}</span> <small>${factsOf(run)}</small></span>
<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true"><rect class="${run.status}" x="${from}" y="0" width="${width}" height="10"/></svg>
<span class="took">${took}</span></a></li>`;
}

/** Beside its name. */
function factsOf({ run_type: type, status, total_tokens: tokens }: TreeRun): string {
  return [
    type,
    ...(status === 'success' ? [] : [status]),
    ...(tokens === null ? [] : [`${tokens} tokens`]),
  ].join(' · ');
}

function summary(rows: readonly TreeRow[]): Html {
  const tokens = rows.reduce((sum, { run }) => sum + BigInt(run.total_tokens ?? 0), 0n);
  const errors = rows.filter(({ run }) => run.status === 'error').length;
  const parts = [
    `${rows.length} ${rows.length === 1 ? 'run' : 'runs'}`,
    ...(errors === 0 ? [] : [`${errors} with an error`]),
    ...(tokens === 0n ? [] : [`${tokens} tokens`]),
  ];
  return html`<p class="sum">${parts.join(' · ')}</p>`;
}

function runDetails({ run, payloads, attachments, feedback }: ChosenRun, links: Links): Html {
  const show = (field: PayloadField, title: string): Html | undefined => {
    const payload = payloads.get(field);
    const link = html`<small><a href="${links.raw(run.id, field)}" download="">Download</a></small>`;
    if (payload === undefined) return undefined;
    return html`<h3${field === 'error' && html` class="error"`}>${title} ${link}</h3>${payloadBlock(run, field, payload)}`;
  };
  const fold = (field: PayloadField, title: string): Html | undefined => {
    const payload = payloads.get(field);
    const link = html`<p><a href="${links.raw(run.id, field)}" download="">Download</a></p>`;
    return (
      payload &&
      html`<details><summary>${title}</summary>${payloadBlock(run, field, payload)}${link}</details>`
    );
  };
  return html`<h2>${runName(run.name, 1_000)} <small>${run.run_type}</small></h2>${factList(run)}
${show('error', 'Error')}${show('inputs', 'Inputs')}${show('outputs', 'Outputs')}
${attachments.length > 0 && attachmentList(attachments)}${feedback.length > 0 && feedbackList(feedback)}
${fold('extra', 'Metadata and runtime')}${fold('events', 'Events')}${fold('serialized', 'Serialized')}`;
}

function factList(run: FoundRun): Html {
  const ttft = run.first_token_time;
  const facts: readonly (readonly [string, Html | string | undefined])[] = [
    ['Status', html`<span class="${run.status}">${run.status}</span>`],
    ['Started', `${formatTime(run.start_time)} UTC`],
    ['Duration', durationOf(run)],
    [
      'First token',
      ttft === null ? undefined : formatDuration(microsecondsOf(ttft) - microsecondsOf(run.start_time)),
    ],
    ['Tokens', tokensOf(run)],
    ['Cost', formatCost(run.total_cost)],
    ['Tags', run.tags.length === 0 ? undefined : tagList(run.tags, 50)],
    ['Thread', run.thread_id === null ? undefined : visibleText(run.thread_id, { max: 200 })],
    ['Run', html`<code>${run.id}</code>`],
  ];
  return html`<dl>${facts.map(([name, value]) => value !== undefined && html`<dt>${name}</dt><dd>${value}</dd>`).filter((fact) => fact !== false)}</dl>`;
}

function tokensOf({ total_tokens: total, prompt_tokens: prompt, completion_tokens: completion }: FoundRun) {
  if (total === null) return undefined;
  const parts = prompt !== null && completion !== null ? ` (${prompt} in, ${completion} out)` : '';
  return `${total}${parts}`;
}

function payloadBlock(run: FoundRun, field: PayloadField, payload: ShownPayload): Html {
  const text = field === 'error' ? textOf(payload) : layOutJson(payload.text);
  // With the focus it can be scrolled by keys.
  return html`<pre tabindex="0">${visibleText(text, { max: Infinity, isBlock: true })}</pre>${cutNote(run, field, payload)}`;
}

function cutNote(
  run: FoundRun,
  field: PayloadField,
  { text, isWhole, bytes }: ShownPayload,
): Html | undefined {
  if (isWhole) return undefined;
  const whole =
    bytes === undefined
      ? `The whole takes ${formatBytes(run.sizes[field] ?? 0)} where it is stored, mostly compressed.`
      : `The whole has ${formatBytes(bytes)}.`;
  return html`<p class="cut">Cut after ${formatBytes(Buffer.byteLength(text))}. ${whole} Download it to see the rest.</p>`;
}

/** An error is mostly one text, with lines of its own. */
function textOf({ text, isWhole }: ShownPayload): string {
  if (!isWhole || !text.trimStart().startsWith('"')) return layOutJson(text);
  const value: unknown = JSON.parse(text);
  return typeof value === 'string' ? value : layOutJson(text);
}

function attachmentList(attachments: readonly ShownAttachment[]): Html {
  const items = attachments.map(
    ({ name, mime_type, size, address }) =>
      html`<li><a href="${address}" download="">${visibleText(name, { max: 200 })}</a> <small>${mime_type}, ${formatBytes(size)}</small></li>`,
  );
  return html`<h3>Attachments</h3><ul class="plain">${items}</ul>`;
}

function feedbackList(feedback: readonly ShownFeedback[]): Html {
  const show = (text: string | null, bytes: number | null, max: number): Html | undefined =>
    text === null ? undefined : visibleText(text, { max, ...(bytes === null ? {} : { wholeBytes: bytes }) });
  const items = feedback.map(({ key, score, value, comment, ...bytes }) => {
    const said = show(comment, bytes.comment_bytes, 2_000);
    return html`<li>${visibleText(key, { max: 250 })}: ${score !== null && html`<b>${score}</b> `}${show(value, bytes.value_bytes, 500)}${said && html` <span class="faint">${said}</span>`}</li>`;
  });
  return html`<h3>Feedback</h3><ul class="plain">${items}</ul>`;
}
