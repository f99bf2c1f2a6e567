// The cookie of a session. Over TLS its name has the prefix __Host-, which no other host, no path and no plain connection can
// set; over plain HTTP on loopback browsers know no such prefix.
import { DomainError } from '../../../base/domain-error.ts';
import { cookieValues, formatCookie } from '../../../base/http/cookie.ts';
import type { RequestHead } from '../../../base/http/request-head.ts';
import { isFormToken, SESSION_MS } from '../../identity/sessions.ts';

/** A request of a browser: its head, and the origin that it was sent to where sessions are allowed. */
export type PageRequest = { readonly head: RequestHead; readonly origin: string | undefined };

/** Undefined without one. Throws for two: one of them was set by somebody else. */
export function sessionIn({ head, origin }: PageRequest): string | undefined {
  if (origin === undefined) return undefined;
  const [own, another] = cookieValues(head, nameOf(origin));
  if (another !== undefined) throw new DomainError('unauthenticated', TWO_COOKIES);
  return own;
}

export function sessionCookie(origin: string, text: string): string {
  return cookieOf(origin, text, SESSION_MS / 1000);
}

export function endedCookie(origin: string): string {
  return cookieOf(origin, '', 0);
}

/** Browsers name the page that a request comes from; who names none is no browser, and has no cookies of others. */
export function requireOwnPage({ head, origin }: PageRequest): void {
  const origins = head.values('origin');
  const sites = head.values('sec-fetch-site');
  const isOwn = origins.every((one) => one === origin) && sites.every((one) => one === 'same-origin');
  if (!isOwn) throw new DomainError('forbidden', FOREIGN_PAGE);
}

/** What a request needs beside the cookie in order to change something. */
export function requireFormToken(request: PageRequest, session: string, token: string | undefined): void {
  requireOwnPage(request);
  if (token === undefined || !isFormToken(session, token)) throw new DomainError('forbidden', NO_TOKEN);
}

const TWO_COOKIES = 'Two session cookies were sent: delete the cookies of this site and sign in again';
const FOREIGN_PAGE = 'This request comes from a page of another site';
const NO_TOKEN =
  'A request with a session must prove that a page of this site sent it: send its token as X-CSRF-Token';

function nameOf(origin: string): string {
  return origin.startsWith('https:') ? '__Host-sallyport' : 'sallyport';
}

function cookieOf(origin: string, value: string, seconds: number): string {
  return formatCookie({ name: nameOf(origin), value, seconds, isSecure: origin.startsWith('https:') });
}
