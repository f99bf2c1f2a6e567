// The fields of a service's response as its client gets them: nothing in them speaks for the gateway, for another service, or for the
// whole origin where services share one. Pure.
import type { ServicePlace } from './service-address.ts';
import { toClientCookie } from './service-cookies.ts';

/** What a browser applies to more than the response: to the origin, to the domain above it, or to later connections. */
const REMOVED: ReadonlySet<string> = new Set([
  'clear-site-data',
  'strict-transport-security',
  'public-key-pins',
  'expect-ct',
  'alt-svc',
  'nel',
  'report-to',
  // A page of another origin must not read what the cookie of a user gives access to.
  'access-control-allow-credentials',
]);

/** The same where all services have one origin. */
const REMOVED_BY_PATH: ReadonlySet<string> = new Set([
  'service-worker-allowed',
  'accept-ch',
  'critical-ch',
  'origin-agent-cluster',
  'origin-trial',
  'reporting-endpoints',
  'secure-session-registration',
  'sec-session-registration',
  'set-login',
  'use-as-dictionary',
]);

/** Without allow-same-origin: a page has an origin of its own, which no other page has. */
const SANDBOX = 'sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts';

/** `fields` and the result: name, value, name, value, … */
export function toClientFields(place: ServicePlace, fields: readonly string[]): readonly string[] {
  const result: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const [name, value] = [fields[i] as string, fields[i + 1] as string];
    const lower = name.toLowerCase();
    if (REMOVED.has(lower) || (place.by === 'path' && REMOVED_BY_PATH.has(lower))) continue;
    const changed = lower === 'set-cookie' ? toClientCookie(place, value) : value;
    if (changed === undefined) continue;
    result.push(name, lower === 'location' ? toClientLocation(place, changed) : changed);
  }
  // What one client may read no cache between may give to another.
  result.push('Vary', 'Cookie, X-Langsmith-Sandbox-Service-Token');
  if (place.by === 'path') result.push('Content-Security-Policy', SANDBOX);
  return result;
}

/** A redirect within the service stays within it; one to another place is not changed. */
function toClientLocation(place: ServicePlace, location: string): string {
  const { origin, prefix } = place;
  const [, authority, rest] = /^(?:https?:)?\/\/([^/?#]*)(.*)$/is.exec(location) ?? [];
  if (authority !== undefined && !isOwn(place, authority)) return location;
  const target = rest ?? location;
  if (authority === undefined && !target.startsWith('/')) return location;
  const path = target.startsWith('/') ? target : `/${target}`;
  // By a service that knows where it is.
  const known = prefix !== '' && (path === prefix || path.startsWith(`${prefix}/`));
  const changed = known ? path : `${prefix}${path}`;
  return authority === undefined ? changed : `${origin}${changed}`;
}

/** As clients address it, or as its own programs do. */
function isOwn({ authority, port }: ServicePlace, named: string): boolean {
  const own = named.toLowerCase();
  return own === authority || ['localhost', '127.0.0.1', '[::1]'].some((host) => own === `${host}:${port}`);
}
