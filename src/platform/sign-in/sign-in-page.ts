// The page to sign in and to sign out, without a script. Pure.
import { createHash } from 'node:crypto';
import type { ErrorFormat } from '../api/contract/error-formats.ts';

type Form = { readonly next: string; readonly problem?: string };

export function signInPage({ next, problem }: Form): string {
  const note = problem === undefined ? '' : `<p role="alert">${escape(problem)}</p>`;
  return page(`${note}<form method="post" action="/login">
<label>API key <input name="key" type="password" autocomplete="off" required autofocus></label>
<input name="next" type="hidden" value="${escape(next)}"><button>Sign in</button></form>`);
}

export function signedInPage(token: string): string {
  return page(`<p>You are signed in.</p><form method="post" action="/logout">
<input name="csrf_token" type="hidden" value="${escape(token)}"><button>Sign out</button></form>`);
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

/** Browsers send `Origin: null` with a form of a page that has the policy no-referrer. */
export const pageFields: Readonly<Record<string, string>> = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
};

function page(content: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sallyport platform</title><style>${STYLE}</style></head><body><h1>Sallyport platform</h1>${content}</body></html>`;
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
