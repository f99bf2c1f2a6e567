// The projects of a workspace, as a table. Pure.
import { type Html, html } from '../../../base/html/html.ts';
import type { Links } from './page-links.ts';
import { formatTime } from '../../api/pages/page-time.ts';
import { visibleText } from '../../../base/html/visible-text.ts';

export type ShownProject = {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly last_run_start_time_live: string | null;
};

export type ProjectList = {
  readonly projects: readonly ShownProject[];
  readonly name: string;
  readonly workspace: string | undefined;
  /** Addresses of the pages before and after this one. */
  readonly before: string | undefined;
  readonly after: string | undefined;
};

export function projectsContent(
  { projects, name, workspace, before, after }: ProjectList,
  links: Links,
): Html {
  const rows = projects.map(
    (
      project,
    ) => html`<tr><td class="lead"><a data-row="0" href="${links.project(project.id)}">${visibleText(project.name, { max: 200 })}</a></td>
<td>${project.description === null ? undefined : visibleText(project.description, { max: 300 })}</td>
<td class="short" data-label="last run">${project.last_run_start_time_live === null ? undefined : formatTime(project.last_run_start_time_live)}</td></tr>`,
  );
  return html`<form method="get" action="/traces"><input type="search" name="name" value="${name}" placeholder="Part of a name" aria-label="Part of a name">
${hiddenWorkspace(workspace)}<button>Find</button></form>
${rows.length === 0 ? html`<p class="none">${name === '' ? NONE : 'No project has this in its name.'}</p>` : html`<table data-keys=""><thead><tr><th>Project</th><th>Description</th><th>Last run (UTC)</th></tr></thead><tbody>${rows}</tbody></table>`}
${pageLinks(before, after)}<p class="more"><a href="${links.exports()}">Exports</a></p>`;
}

const NONE = 'This workspace has no traces yet: the first run that a client sends creates its project.';

/** For a form, whose address loses the query that it had. */
export function hiddenWorkspace(workspace: string | undefined): Html | undefined {
  return workspace === undefined
    ? undefined
    : html`<input type="hidden" name="workspace" value="${workspace}">`;
}

export function pageLinks(before: string | undefined, after: string | undefined): Html {
  return html`<p class="more">${before !== undefined && html`<a rel="prev" href="${before}">Newer</a>`}${after !== undefined && html`<a rel="next" href="${after}">Older</a>`}</p>`;
}
