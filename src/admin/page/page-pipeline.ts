// One request for a page, from its head to its response: whether a browser may send it, whose it is, and only then a form. A cookie
// authorizes what is here and nothing of the API; a token of the API authorizes nothing here but a sign-in.
import { RequestError } from '../../base/http/request-body.ts';
import { allowedMethods, createRouteTable } from '../../base/http/route-table.ts';
import { html } from '../../base/html/html.ts';
import { describeBug } from '../../base/log.ts';
import type { AdminResponse } from '../admin-errors.ts';
import { toAdminRecord } from '../admin-records.ts';
import type { AdminExchange } from '../request-pipeline.ts';
import { isOwnRead, originOfForm, sessionCookieOf } from './page-cookie.ts';
import { alert, type PageContent, pageResponse } from './page-frame.ts';
import type { PageExchange, PageScope } from './page-request.ts';
import { pageRoutes } from './page-routes.ts';
import type { PageSession } from './page-sessions.ts';
import { signIn, signInPage, signOut } from './sign-in.ts';

const findRoute = createRouteTable(pageRoutes);
const MAX_FORM_BYTES = 16 * 1024;
const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i;

/** Of forms that begin or end something. */
const ACTIONS: Readonly<Record<string, string>> = {
  '/ui/sign-in': 'session.begin',
  '/ui/sign-out': 'session.end',
};

/** Leaves a record of each form that begins or ends a session, and of each one that is rejected. Rejects only if recording throws. */
export async function handlePage(scope: PageScope, exchange: AdminExchange): Promise<AdminResponse> {
  const { head, requestId, client, startedMs } = exchange;
  const [path = '', search = ''] = head.target.split(/\?(.*)/s);
  const response = scope.guard.rejectForm(head) ?? (await respond(scope, exchange, path, search));
  const isRead = head.method === 'GET' || head.method === 'HEAD';
  const known = head.method === 'POST' ? ACTIONS[path] : undefined;
  if (isRead || (known === undefined && response.reason === undefined)) return response;
  const start = { action: known ?? 'page.form', sandbox: undefined, client, requestId, startedMs };
  const entry = toAdminRecord(start, response, performance.now());
  if (response.status < 400) scope.record(entry);
  else scope.unauthenticated.add(entry);
  return response;
}

async function respond(
  scope: PageScope,
  exchange: AdminExchange,
  path: string,
  search: string,
): Promise<AdminResponse> {
  const { head } = exchange;
  if (path === '/') return { status: 303, fields: { Location: '/ui', Vary: 'Accept' } };
  const session = isOwnRead(head) ? findSession(scope, exchange) : undefined;
  try {
    const form = head.method === 'POST' ? await readForm(exchange) : new URLSearchParams();
    if ('status' in form) return pageResponse(form, session);
    const asked = { ...exchange, query: new URLSearchParams(search), form };
    return await serve(scope, asked, path, session);
  } catch (error) {
    scope.log.error({ ...describeBug(error), request: exchange.requestId }, 'page failed');
    return pageResponse(problem('internal_error', 500, BUG), session);
  }
}

function findSession(scope: PageScope, { head, onAuthenticated }: AdminExchange): PageSession | undefined {
  const cookie = sessionCookieOf(head);
  const session = cookie && scope.sessions.find(cookie.text, cookie.isTls);
  if (session !== undefined) onAuthenticated();
  return session;
}

async function serve(
  scope: PageScope,
  exchange: PageExchange,
  path: string,
  session: PageSession | undefined,
): Promise<AdminResponse> {
  const { head, query, form } = exchange;
  if (head.method === 'POST' && path === '/ui/sign-in') return signIn(scope, exchange);
  if (session === undefined) return signInPage(scope, path);
  if (head.method === 'POST') {
    const isOwn = originOfForm(head) !== undefined && session.hasFormToken(form.get('form_token') ?? '');
    if (!isOwn) return pageResponse(problem('foreign_form', 403, FOREIGN_FORM), session);
    if (path === '/ui/sign-out') return signOut(scope, exchange);
  }
  const { route, routes } = findRoute(head.method, path);
  if (route === undefined) return pageResponse(rejectRoute(routes), session);
  const page = await scope.target.loadPage();
  const made = route.handler({ session, page, query, form, scope, exchange });
  return 'title' in made ? pageResponse(made, session) : made;
}

/** A form that is not as a browser sends it gets a page that says why. */
async function readForm({
  head,
  body,
}: AdminExchange): Promise<URLSearchParams | (PageContent & { status: number })> {
  const [type = '', another] = head.values('content-type');
  if (another !== undefined || !FORM_TYPE.test(type) || head.values('content-encoding').length > 0)
    return problem('content_type', 415, NO_FORM);
  try {
    return new URLSearchParams((await body.read(MAX_FORM_BYTES)).toString());
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return error.kind === 'too_large'
      ? problem('too_large', 413, LARGE_FORM)
      : problem(error.kind, 400, BROKEN_FORM);
  }
}

function rejectRoute(routes: readonly { readonly method: string }[]): PageContent {
  if (routes.length === 0) return problem('no_route', 404, NO_PAGE);
  return { ...problem('method', 405, NO_METHOD), fields: { Allow: allowedMethods(routes) } };
}

/** `reason` is for the record. */
function problem(reason: string, status: number, text: string): PageContent & { readonly status: number } {
  return { reason, status, title: 'Not shown', content: html`${alert(text)}` };
}

const NO_PAGE = 'There is no such page: use one of those above.';
const NO_METHOD = 'This page is not asked for in this way: use the links and forms above.';
const NO_FORM = 'The request has no form: send application/x-www-form-urlencoded without a Content-Encoding.';
const LARGE_FORM = 'The form is too large: send at most 16 KiB.';
const BROKEN_FORM = 'The form did not arrive whole: send it again.';
const FOREIGN_FORM = 'The form was not sent by this page, or by an earlier session: open the page again.';
const BUG = 'The sidecar has a bug: its log has the X-Request-Id of this response.';
