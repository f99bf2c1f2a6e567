// The fields of a service's response as its client gets them. Pure.
import { toSiteFields } from '../../../gateway/site/client-fields.ts';
import { type ServicePlace, siteOf } from './service-address.ts';

/** A page of another origin must not read what the cookie of a user gives access to. */
const REMOVED: ReadonlySet<string> = new Set(['access-control-allow-credentials']);

/** `fields` and the result: name, value, name, value, … */
export function toClientFields(place: ServicePlace, fields: readonly string[]): readonly string[] {
  const result = toSiteFields(siteOf(place), fields, { removed: REMOVED, isRedirect: true });
  // What one client may read no cache between may give to another.
  return [...result, 'Vary', 'Cookie, X-Langsmith-Sandbox-Service-Token'];
}
