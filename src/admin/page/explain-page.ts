// What the rules decide about one URL. The URL comes in a form, not in the address of the page: its query may hold a credential, and
// browsers store addresses.
import { type Html, html } from '../../base/html/html.ts';
import { visibleText } from '../../base/html/visible-text.ts';
import { alert, formToken, type PageContent } from './page-frame.ts';
import type { PageRequest } from './page-request.ts';
import type { ShownExplanation, ShownRow } from './page-target.ts';
import { noSandbox, sandboxChoice } from './sandbox-choice.ts';

const MAX_URL_CHARS = 8_192;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'] as const;
const MAX_SHOWN_CHARS = 1_024;

type Asked = { readonly sandbox: string; readonly url: string; readonly method: string };

export function explainForm({ page, session, query }: PageRequest): PageContent {
  const asked = { sandbox: query.get('sandbox') ?? 'default', url: '', method: 'GET' };
  return { title: 'Explain', place: '/ui/explain', content: form(page, session.formToken, asked) };
}

export function explainPage({ page, session, form: given }: PageRequest): PageContent {
  const asked = {
    sandbox: given.get('sandbox') ?? 'default',
    url: (given.get('url') ?? '').trim(),
    method: METHODS.find((method) => method === given.get('method')) ?? 'GET',
  };
  const made =
    asked.url.length > MAX_URL_CHARS
      ? `Give a URL of at most ${MAX_URL_CHARS} characters.`
      : (page.explain(asked.sandbox, asked.url, asked.method) ?? noSandbox(page));
  const isFound = typeof made !== 'string';
  const content = html`${form(page, session.formToken, asked)}${isFound ? result(made) : alert(sentence(made))}`;
  return { status: isFound ? 200 : 422, title: 'Explain', place: '/ui/explain', content };
}

function form(page: PageRequest['page'], token: string, { sandbox, url, method }: Asked): Html {
  const options = METHODS.map((one) => html`<option${one === method && html` selected`}>${one}</option>`);
  return html`<p class="note">Which rule or callback decides about a request, and the names of the headers that it would get. Nothing is
sent, and no name is resolved.</p><form method="post" action="/ui/explain">${formToken(token)}
<label>Method <select name="method">${options}</select></label>
<label class="grow">URL <input type="url" name="url" required value="${url}" placeholder="https://api.example.com/v1/models"></label>
${sandboxChoice(page, sandbox)}<button>Explain</button></form>`;
}

function result({ rows, isRefused }: ShownExplanation): Html {
  return html`<section aria-label="Explanation"${isRefused && html` class="refused"`}>${valueList(rows)}</section>`;
}

export function valueList(rows: readonly ShownRow[]): Html {
  const items = rows.map(
    ([label, text]) => html`<dt>${label}</dt><dd>${visibleText(text, { max: MAX_SHOWN_CHARS })}</dd>`,
  );
  return html`<dl class="values">${items}</dl>`;
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
