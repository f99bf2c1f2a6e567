// What comes from this machine: addresses, the names that requests are sent to, and the origins of pages.
import type { RequestHead } from '../../../base/http/request-head.ts';

/** Of `http.cors` and CORS_ALLOW_ORIGINS. */
type Origins = {
  readonly origins: readonly string[];
  readonly originPattern: RegExp | undefined;
};

export const LOOPBACK_ORIGIN = /^https?:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/;

export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\.\d+\.\d+\.\d+$/.test(address);
}

/** A page that had its own name resolved to loopback still sends that name. */
export function isLoopbackHost({ host = '' }: Pick<RequestHead, 'host'>): boolean {
  return /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/.test(host);
}

/** A browser names the origin of a page that calls another one. `*` names nobody. */
export function isKnownOrigin(origin: string | undefined, { origins, originPattern }: Origins): boolean {
  if (origin === undefined || (origin !== '*' && origins.includes(origin))) return true;
  return originPattern?.test(origin) === true || LOOPBACK_ORIGIN.test(origin);
}
