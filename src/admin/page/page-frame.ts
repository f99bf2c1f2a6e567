// What is around the content of each page: its title, the ways to the others, style and script, and the fields that allow these alone.
import { Html, html } from '../../base/html/html.ts';
import { pageFieldsOf } from '../../base/html/page-fields.ts';
import type { AdminResponse } from '../admin-errors.ts';
import { SCRIPT } from './page-script.ts';
import type { PageSession } from './page-sessions.ts';
import { STYLE } from './page-style.ts';

/** The pages, in the order in which they are offered. */
export const places = [
  ['/ui', 'Exchanges'],
  ['/ui/explain', 'Explain'],
  ['/ui/rules', 'Rules'],
  ['/ui/state', 'State'],
] as const;
export type Place = (typeof places)[number][0];

export type PageContent = {
  /** 200 when absent. */
  readonly status?: number;
  /** Of the window: a text of this program. */
  readonly title: string;
  readonly place?: Place;
  readonly content: Html;
  readonly fields?: Readonly<Record<string, string>>;
  /** Why it is an error, for its record. */
  readonly reason?: string;
};

const pageFields = pageFieldsOf({ style: STYLE, script: SCRIPT, connects: true });

export function pageResponse(page: PageContent, session: PageSession | undefined): AdminResponse {
  const { status = 200, fields, reason } = page;
  const response = { status, fields: { ...pageFields, ...fields }, body: String(frame(page, session)) };
  return reason === undefined ? response : { ...response, reason };
}

function frame({ title, place, content }: PageContent, session: PageSession | undefined): Html {
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title} - Sallyport sidecar</title><style>${Html.fromTemplate(STYLE)}</style></head><body>
<a class="skip" href="#content">Skip to the content</a>
<header><p class="name"><a href="/ui">Sallyport sidecar</a></p>${session && navigation(session, place)}</header>
<main id="content" tabindex="-1"><h1>${title}</h1>${content}</main>
<script>${Html.fromTemplate(SCRIPT)}</script></body></html>`;
}

function navigation(session: PageSession, current: Place | undefined): Html {
  const links = places.map(
    ([path, name]) => html`<a href="${path}"${path === current && html` aria-current="page"`}>${name}</a>`,
  );
  return html`<nav aria-label="Pages">${links}</nav>
<form class="sign-out" method="post" action="/ui/sign-out">${formToken(session.formToken)}<button>Sign out</button></form>`;
}

/** The hidden field that proves that a form comes from a page of ours. */
export function formToken(token: string): Html {
  return html`<input type="hidden" name="form_token" value="${token}">`;
}

export function alert(text: string): Html {
  return html`<div role="alert"><p>${text}</p></div>`;
}
