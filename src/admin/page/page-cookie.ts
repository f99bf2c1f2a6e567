// The cookie of the page, and whether a request comes from the page itself. Pure. The API never reads a cookie.
import { cookieValues, formatCookie } from '../../base/http/cookie.ts';
import type { RequestHead } from '../../base/http/request-head.ts';
import { SESSION_MS } from './page-sessions.ts';

type Head = Pick<RequestHead, 'host' | 'values'>;

export type SentCookie = { readonly text: string; readonly isTls: boolean };

/** What a browser sent; undefined without it, and for two of one name: one of them was set by somebody else. */
export function sessionCookieOf(head: Head): SentCookie | undefined {
  for (const isTls of [true, false]) {
    const [text, another] = cookieValues(head, nameOf(head, isTls));
    if (text !== undefined) return another === undefined ? { text, isTls } : undefined;
  }
  return undefined;
}

/** `text` undefined: deletes the cookie. */
export function setSessionCookie(head: Head, isTls: boolean, text?: string): string {
  const seconds = text === undefined ? 0 : SESSION_MS / 1000;
  return formatCookie({ name: nameOf(head, isTls), value: text ?? '', seconds, isSecure: isTls });
}

/** Of a form that this page has sent, whether by TLS: browsers name its origin, in which nobody else has a say. Undefined: of another page. */
export function originOfForm(head: Head): { readonly isTls: boolean } | undefined {
  const [origin, another] = head.values('origin');
  if (another !== undefined || !isSentByOwn(head, ['same-origin'])) return undefined;
  if (origin === `http://${head.host}`) return { isTls: false };
  return origin === `https://${head.host}` ? { isTls: true } : undefined;
}

/** Of a page or a stream that this page, or the person at the browser, asks for. Other ports of this host are the same site. */
export function isOwnRead(head: Head): boolean {
  return isSentByOwn(head, ['same-origin', 'none']);
}

function isSentByOwn(head: Head, sites: readonly string[]): boolean {
  return head.values('sec-fetch-site').every((site) => sites.includes(site));
}

/** With the port, because browsers send a cookie to every port of a host, where another sidecar may listen. */
function nameOf({ host = '' }: Head, isTls: boolean): string {
  const port = /:(\d+)$/.exec(host)?.[1] ?? (isTls ? '443' : '80');
  return `${isTls ? '__Host-' : ''}sallyport-admin-${port}`;
}
