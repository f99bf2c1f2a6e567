// The cookie of a browser that was authenticated for a service of a box, and the cookies of services: where they share the origin of the
// gateway, each has a prefix of its own. Pure.
import { cookiesIn, toTargetCookies } from '../../../gateway/site/site-cookies.ts';
import { type ServicePlace, siteOf } from './service-address.ts';

/** The prefixes keep other hosts and plain connections from setting it (RFC 6265bis §4.1.3). */
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

/** Every value of our cookie in the fields of a request. */
export function serviceCookiesIn(place: ServicePlace, fields: readonly string[]): readonly string[] {
  return cookiesIn(serviceCookieName(place), fields);
}

/** The value of Cookie as the box gets it; '' is none. */
export function toBoxCookies(place: ServicePlace, field: string): string {
  return toTargetCookies(siteOf(place), field);
}
