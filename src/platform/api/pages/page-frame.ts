// What is around the content of each page: the path that leads to it, its style, its script, and the policy that allows these two alone.
import type { ApiError, ErrorFormat } from '../contract/error-formats.ts';
import { Html, html } from '../../../base/html/html.ts';
import { pageFieldsOf } from '../../../base/html/page-fields.ts';
import { SCRIPT } from './page-script.ts';
import { STYLE } from './page-style.ts';

export const pageFields: Readonly<Record<string, string>> = pageFieldsOf({ style: STYLE, script: SCRIPT });

export type PageParts = {
  /** Of the window: a text of this program. */
  readonly title: string;
  /** Where the page is, the page itself last. */
  readonly path: readonly Html[];
  readonly content: Html;
};

/** The whole page as text. */
export function pageText({ title, path, content }: PageParts): string {
  const steps = path.map((step, at) => (at === 0 ? step : html` <span class="faint">/</span> ${step}`));
  const page = html`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title} - Sallyport</title><style>${Html.fromTemplate(STYLE)}</style></head><body>
<header><h1 class="path">${steps}</h1><nav><a href="/login">Session</a></nav></header><main>${content}</main>
<script>${Html.fromTemplate(SCRIPT)}</script></body></html>`;
  return String(page);
}

/** Of the pages of a module: the first of them, and what they show. */
export type PageGroup = { readonly title: string; readonly address: string; readonly shows: string };

/** Errors for the person who asked for a page. */
export function frameErrors(group: PageGroup): ErrorFormat {
  const { title, address } = group;
  return {
    mediaType: 'text/html',
    schema: { type: 'string' },
    write: (error) => ({
      status: error.status,
      fields: { ...pageFields, ...error.fields },
      body: pageText({
        title,
        path: [html`<a href="${address}">${title}</a>`],
        content: html`${error.status === 401 && signIn(group)}<div role="alert">${linesOf(error)}</div>`,
      }),
    }),
  };
}

/** The script adds the page to come back to. */
function signIn({ address, shows }: PageGroup): Html {
  const next = `/login?next=${encodeURIComponent(address)}`;
  return html`<p><a href="${next}" data-sign-in="">Sign in</a> with an API key to see the ${shows} of its workspace.</p>`;
}

function linesOf({ detail, issues = [] }: ApiError): readonly Html[] {
  if (issues.length === 0) return [html`<p>${detail}</p>`];
  return issues.map(({ loc, msg }) => html`<p>${loc.join('.')}: ${msg}</p>`);
}
