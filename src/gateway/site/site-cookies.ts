// Cookies of targets. Those of the gateway's owner are never seen by a target, and a target sets none in their place. Targets that share
// an origin have cookies with a prefix of their own, below a path of their own. Pure.
import type { Site } from './site.ts';

type CookieSite = Pick<Site, 'by' | 'prefix' | 'cookiePrefix'>;

/** All names that are ours, or that a browser or a server could take for ours. */
const OURS = /^(?:__host-|__secure-)?sallyport/i;

/** Every value of a cookie in the fields of a request: of two, one was set by somebody else. */
export function cookiesIn(name: string, fields: readonly string[]): readonly string[] {
  return fields
    .flatMap(pairsOf)
    .flatMap((pair) => (pair.name === name && pair.value !== undefined ? [pair.value] : []));
}

/** The value of Cookie as the target gets it; '' is none. */
export function toTargetCookies({ cookiePrefix }: CookieSite, field: string): string {
  return pairsOf(field)
    .filter(({ name }) => !OURS.test(name) && name.startsWith(cookiePrefix))
    .map(({ name, value }) => (value === undefined ? name : `${name.slice(cookiePrefix.length)}=${value}`))
    .join('; ');
}

/** The value of a Set-Cookie of the target as the client gets it; undefined where it must not set that cookie. */
export function toClientCookie({ by, prefix, cookiePrefix }: CookieSite, field: string): string | undefined {
  const [first = '', ...attributes] = field.split(';').map((part) => part.trim());
  const { name, value } = pairOf(first);
  // Without a name a browser would send the value alone, which reads as any name.
  if (value === undefined || name === '' || OURS.test(name)) return undefined;
  const kept = attributes.filter((attribute) => !/^domain\b/i.test(attribute));
  if (by === 'host') return [`${name}=${value}`, ...kept].join('; ');
  const path = kept.findLast((attribute) => /^path=/i.test(attribute))?.slice('path='.length) ?? '/';
  const below = path.startsWith('/') && path !== '/' ? path : '';
  return [
    `${cookiePrefix}${name}=${value}`,
    ...kept.filter((attribute) => !/^path\b/i.test(attribute)),
    `Path=${prefix}${below}`,
  ].join('; ');
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
