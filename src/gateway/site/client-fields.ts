// The fields of a target's response as its client gets them: nothing in them speaks for the gateway, for another target, or for the
// whole origin where targets share one. Pure.
import { toClientCookie } from './site-cookies.ts';
import type { Site } from './site.ts';

/** What a browser applies to more than the response: to the origin, to the domain above it, or to later connections. */
const REMOVED: ReadonlySet<string> = new Set([
  'clear-site-data',
  'strict-transport-security',
  'public-key-pins',
  'expect-ct',
  'alt-svc',
  'nel',
  'report-to',
]);

/** The same where targets share an origin. */
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

export type FieldRules = {
  /** In lower case, besides those that no target may send. */
  readonly removed?: ReadonlySet<string>;
  /** Whether `Location` names the place of the response, or is for the client to read. */
  readonly isRedirect: boolean;
};

/** `fields` and the result: name, value, name, value, … */
export function toSiteFields(
  site: Site,
  fields: readonly string[],
  { removed, isRedirect }: FieldRules,
): string[] {
  const result: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const [name, value] = [fields[i] as string, fields[i + 1] as string];
    const lower = name.toLowerCase();
    if (REMOVED.has(lower) || removed?.has(lower)) continue;
    if (site.by === 'path' && REMOVED_BY_PATH.has(lower)) continue;
    const changed = lower === 'set-cookie' ? toClientCookie(site, value) : value;
    if (changed === undefined) continue;
    result.push(name, lower === 'location' && isRedirect ? toClientLocation(site, changed) : changed);
  }
  if (site.by === 'path') result.push('Content-Security-Policy', SANDBOX);
  return result;
}

/** A redirect within the target stays within it; one to another place is not changed. */
function toClientLocation(site: Site, location: string): string {
  const { origin, prefix } = site;
  const [, authority, rest] = /^(?:https?:)?\/\/([^/?#]*)(.*)$/is.exec(location) ?? [];
  if (authority !== undefined && !isOwn(site, authority)) return location;
  const target = rest ?? location;
  if (authority === undefined && !target.startsWith('/')) return location;
  const path = target.startsWith('/') ? target : `/${target}`;
  // By a target that knows where it is.
  const known = prefix !== '' && (path === prefix || path.startsWith(`${prefix}/`));
  const changed = known ? path : `${prefix}${path}`;
  return authority === undefined ? changed : `${origin}${changed}`;
}

/** As clients address it, or as its own programs do. */
function isOwn({ authority, aliases }: Site, named: string): boolean {
  const own = named.toLowerCase();
  return own === authority || aliases.includes(own);
}
