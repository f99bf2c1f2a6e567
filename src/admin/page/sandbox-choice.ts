// The field of a form that chooses a sandbox, where there are several.
import { type Html, html } from '../../base/html/html.ts';
import type { PageTarget } from './page-target.ts';

export function sandboxChoice(page: Pick<PageTarget, 'sandboxes'>, chosen: string): Html | undefined {
  const ids = page.sandboxes();
  if (ids.length < 2) return undefined;
  const options = ids.map((id) => html`<option${id === chosen && html` selected`}>${id}</option>`);
  return html`<label>Sandbox <select name="sandbox">${options}</select></label>`;
}

export function noSandbox(page: Pick<PageTarget, 'sandboxes'>): string {
  return `There is no such sandbox: choose one of the ${page.sandboxes().length} that there are.`;
}
