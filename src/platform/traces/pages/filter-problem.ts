// A filter that is not one: what is wrong, and where in it. Pure.
import type { FilterIssue } from '../filter/tokens.ts';
import { type Html, html } from '../../../base/html/html.ts';
import { visibleText } from '../../../base/html/visible-text.ts';

/** Of the filter around a place. */
const AROUND = 60;
const MAX_SHOWN = 10;

export function filterProblem(filter: string, issues: readonly FilterIssue[]): Html {
  const more = issues.length - MAX_SHOWN;
  return html`<div role="alert" id="problem">${issues.slice(0, MAX_SHOWN).map((issue) => showIssue(filter, issue))}
${more > 0 && html`<p>${more} more problems are not shown.</p>`}</div>`;
}

function showIssue(filter: string, { at, msg }: FilterIssue): Html {
  const place = Math.min(at, filter.length);
  const word = /^(?:[\w.]+|"[^"]*"?|'[^']*'?|[^])/u.exec(filter.slice(place, place + AROUND))?.[0] ?? '';
  const [before, after] = [
    filter.slice(Math.max(0, place - AROUND), place),
    filter.slice(place + word.length, place + word.length + AROUND),
  ];
  const show = (text: string): Html => visibleText(text, { max: 2 * AROUND });
  const marked = word === '' ? html`<mark> end </mark>` : html`<mark>${show(word)}</mark>`;
  return html`<p>Character ${place + 1}: ${msg}</p><p class="mono">${place > AROUND && '…'}${show(before)}${marked}${show(after)}</p>`;
}
