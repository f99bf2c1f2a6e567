// The page to sign in and to sign out, without a script. Pure.
import { Html, html } from '../../base/html/html.ts';
import { pageFieldsOf } from '../../base/html/page-fields.ts';
import type { ErrorFormat } from '../api/contract/error-formats.ts';

type Form = { readonly next: string; readonly problem?: string };

export function signInPage({ next, problem }: Form): string {
  const note = problem !== undefined && html`<p role="alert">${problem}</p>`;
  return page(html`${note}<form method="post" action="/login">
<label>API key <input name="key" type="password" autocomplete="off" required autofocus></label>
<input name="next" type="hidden" value="${next}"><button>Sign in</button></form>`);
}

export function signedInPage(token: string): string {
  return page(html`<p>You are signed in.</p><form method="post" action="/logout">
<input name="csrf_token" type="hidden" value="${token}"><button>Sign out</button></form>`);
}

/** Errors of a form, for the person who sent it. */
export const pageErrors: ErrorFormat = {
  mediaType: 'text/html',
  schema: { type: 'string' },
  write: ({ status, detail, fields }) => ({
    status,
    fields: { ...pageFields, ...fields },
    body: signInPage({ next: '/login', problem: detail }),
  }),
};

const STYLE = 'body{font:16px/1.5 system-ui,sans-serif;max-width:30rem;margin:4rem auto;padding:0 1rem}';

export const pageFields: Readonly<Record<string, string>> = pageFieldsOf({ style: STYLE });

function page(content: Html): string {
  const whole = html`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sallyport platform</title><style>${Html.fromTemplate(STYLE)}</style></head><body><h1>Sallyport platform</h1>${content}</body></html>`;
  return String(whole);
}
