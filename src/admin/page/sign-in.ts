// Signing in with the token of the API, and signing out. Each leaves a record.
import { type Html, html } from '../../base/html/html.ts';
import type { AdminResponse } from '../admin-errors.ts';
import { originOfForm, sessionCookieOf, setSessionCookie } from './page-cookie.ts';
import { alert, formToken, type PageContent, pageResponse, type Place, places } from './page-frame.ts';
import type { PageExchange, PageScope } from './page-request.ts';

/** For whoever has no session. */
export function signInPage(scope: PageScope, next: string, problem?: Problem): AdminResponse {
  const { text, status = 401, fields, reason = 'no_session' } = problem ?? {};
  const page: PageContent = {
    ...{ status, reason, title: 'Sign in', content: signInForm(scope, placeOf(next), text) },
    fields: { ...(status === 401 && { 'WWW-Authenticate': 'Bearer' }), ...fields },
  };
  return pageResponse(page, undefined);
}

type Problem = {
  readonly text: string;
  readonly status?: number;
  readonly fields?: Readonly<Record<string, string>>;
  readonly reason?: string;
};

function signInForm({ signInToken }: PageScope, next: Place, problem: string | undefined): Html {
  return html`${problem !== undefined && alert(problem)}<form class="stacked" method="post" action="/ui/sign-in">
${formToken(signInToken.formToken)}<input type="hidden" name="next" value="${next}">
<input name="username" value="admin" autocomplete="username" hidden>
<label>Admin token <input name="token" type="password" autocomplete="current-password" required autofocus></label>
<button>Sign in</button></form>
<p class="note">The token is in the file <code>secret/admin-token</code> of the state directory, or in the file that
<code>admin.token_file</code> names. If you are signed in and came from elsewhere, <a href="${next}">open the page</a>.</p>`;
}

export async function signIn(scope: PageScope, exchange: PageExchange): Promise<AdminResponse> {
  const { head, form } = exchange;
  const next = form.get('next') ?? '';
  const origin = originOfForm(head);
  // Otherwise a page of somebody else could try tokens, or sign its reader in.
  if (origin === undefined)
    return signInPage(scope, next, { status: 403, reason: 'foreign_form', text: FOREIGN_FORM });
  if (!scope.signInToken.hasFormToken(form.get('form_token') ?? ''))
    return signInPage(scope, next, { status: 403, reason: 'old_form', text: OLD_FORM });
  const rejection = scope.guard.rejectToken(form.get('token') ?? '');
  if (rejection !== undefined) {
    const { status, fields = {} } = rejection;
    const { 'Retry-After': seconds } = fields;
    const again =
      seconds === undefined ? { text: WRONG_TOKEN } : { text: TOO_MANY, fields: { 'Retry-After': seconds } };
    return signInPage(scope, next, { status, reason: 'wrong_token', ...again });
  }
  exchange.onAuthenticated();
  // The one that the browser had ends: its id may be known to somebody else.
  const earlier = sessionCookieOf(head);
  if (earlier !== undefined) scope.sessions.end(earlier.text, earlier.isTls);
  const text = scope.sessions.begin(origin.isTls);
  scope.feed.begin();
  return seeOther(placeOf(next), [setSessionCookie(head, origin.isTls, text)]);
}

export function signOut(scope: PageScope, { head }: PageExchange): AdminResponse {
  const cookie = sessionCookieOf(head);
  if (cookie !== undefined) scope.sessions.end(cookie.text, cookie.isTls);
  return seeOther('/ui', cookie === undefined ? [] : [setSessionCookie(head, cookie.isTls)]);
}

function seeOther(path: Place, cookies: readonly string[]): AdminResponse {
  return { status: 303, fields: { Location: path }, cookies };
}

/** One of the pages alone: a form leads nowhere else. */
function placeOf(text: string): Place {
  return places.find(([path]) => path === text)?.[0] ?? '/ui';
}

const WRONG_TOKEN = 'The token is wrong.';
const TOO_MANY = 'There were too many wrong tokens: correct the token. The right one is always accepted.';
const FOREIGN_FORM =
  'The form was not sent by this page: open it at the address of the sidecar itself, and sign in there.';
const OLD_FORM = 'The form is of another start of the sidecar, or is not complete: sign in again.';
