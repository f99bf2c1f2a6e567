// How the sidecar is: readiness, records, connections, callbacks, memory, and the limits in force.
import { html } from '../../base/html/html.ts';
import { valueList } from './explain-page.ts';
import { alert, type PageContent } from './page-frame.ts';
import type { PageRequest } from './page-request.ts';

export function statePage({ page }: PageRequest): PageContent {
  const groups = page.state();
  const problems = groups.flatMap(({ problem }) => (problem === undefined ? [] : [alert(problem)]));
  const sections = groups.map(
    ({ title, rows }) => html`<section><h2>${title}</h2>${valueList(rows)}</section>`,
  );
  const content = html`${problems}<p class="note">As of this moment, over all sandboxes of the process. <a href="/ui/state">Reload</a></p>
<div class="groups">${sections}</div>`;
  return { title: 'State', place: '/ui/state', content };
}
