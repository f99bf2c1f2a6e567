// Cookies at the services of boxes. Ours is never seen by a box, and a box sets none in its place. Services that share the origin of
// the gateway have cookies with a prefix of their own, below a path of their own. Pure.
import type { ServicePlace } from './service-address.ts';

/** All names that are ours, or that a browser or a server could take for ours. */
const OURS = /^(?:__host-|__secure-)?sallyport/i;

/** Of a browser that was authenticated. The prefixes keep other hosts and plain connections from setting it (RFC 6265bis §4.1.3). */
export function serviceCookieName({ by, origin }: ServicePlace): string {
  const name = 'sallyport-service';
  if (!origin.startsWith('https:')) return name;
  return by === 'host' ? `__Host-${name}` : `__Secure-${name}`;
}

/** SameSite=Lax: browsers do not send a Strict one behind the link that led to the service. */
export function serviceCookie(place: ServicePlace, value: string, seconds: number): string {
  const secure = place.origin.startsWith('https:') ? '; Secure' : '';
  const path = place.by === 'host' ? '/' : place.prefix;
  return `${serviceCookieName(place)}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
}

/** Every value of our cookie in the fields of a request: of two, one was set by somebody else. */
export function serviceCookiesIn(place: ServicePlace, fields: readonly string[]): readonly string[] {
  const name = serviceCookieName(place);
  return fields
    .flatMap(pairsOf)
    .flatMap((pair) => (pair.name === name && pair.value !== undefined ? [pair.value] : []));
}

/** The value of Cookie as the box gets it; '' is none. */
export function toBoxCookies(place: ServicePlace, field: string): string {
  const prefix = prefixOf(place);
  return pairsOf(field)
    .filter(({ name }) => !OURS.test(name) && name.startsWith(prefix))
    .map(({ name, value }) => (value === undefined ? name : `${name.slice(prefix.length)}=${value}`))
    .join('; ');
}

/** The value of a Set-Cookie of the box as the client gets it; undefined where it must not set that cookie. */
export function toClientCookie(place: ServicePlace, field: string): string | undefined {
  const [first = '', ...attributes] = field.split(';').map((part) => part.trim());
  const { name, value } = pairOf(first);
  // Without a name a browser would send the value alone, which reads as any name.
  if (value === undefined || name === '' || OURS.test(name)) return undefined;
  const kept = attributes.filter((attribute) => !/^domain\b/i.test(attribute));
  if (place.by === 'host') return [`${name}=${value}`, ...kept].join('; ');
  const path = kept.findLast((attribute) => /^path=/i.test(attribute))?.slice('path='.length) ?? '/';
  const below = path.startsWith('/') && path !== '/' ? path : '';
  return [
    `${prefixOf(place)}${name}=${value}`,
    ...kept.filter((attribute) => !/^path\b/i.test(attribute)),
    `Path=${place.prefix}${below}`,
  ].join('; ');
}

/** Of the names of cookies that a service sets, where it shares its origin with others. */
function prefixOf({ by, port, boxId }: ServicePlace): string {
  return by === 'host' ? '' : `box-${boxId}-${port}-`;
}

function pairsOf(field: string) {
  return field
    .split(';')
    .map((part) => pairOf(part.trim()))
    .filter(({ name, value }) => name !== '' || value !== undefined);
}

/** `value` is undefined for a text without an equals sign. */
function pairOf(text: string): { readonly name: string; readonly value: string | undefined } {
  const at = text.indexOf('=');
  if (at === -1) return { name: text, value: undefined };
  return { name: text.slice(0, at).trimEnd(), value: text.slice(at + 1).trimStart() };
}
