// Finds the host patterns that match an authority, among thousands: exact hosts in one map, wildcards in another
// that is asked for each parent of the host. The maps only narrow; the compiled pattern itself decides.
import type { Authority } from '../authority/authority.ts';
import { compileHostPattern, type HostPattern } from './host-pattern.ts';

export type Indexed<T> = { readonly pattern: HostPattern; readonly value: T };

export type HostIndex<T> = {
  /** Entries that match, port included, in the order in which they were given. */
  matching(authority: Authority): readonly Indexed<T>[];
};

/** Indexes the entries once. Those of one host share its compiled pattern, and differ by port alone. */
export function createHostIndex<T>(entries: readonly Indexed<T>[]): HostIndex<T> {
  const exact = new Map<string, Group<T>>();
  const wildcard = new Map<string, Group<T>>();
  for (const [order, { pattern, value }] of entries.entries()) {
    const map = pattern.isWildcard ? wildcard : exact;
    const place = { pattern, value, order };
    const group = map.get(pattern.host);
    if (group !== undefined) group.places.push(place);
    else
      map.set(pattern.host, {
        matchesHost: compileHostPattern({ ...pattern, port: undefined }),
        places: [place],
      });
  }
  return {
    matching: (authority) => {
      const { host } = authority;
      const found: Place<T>[] = [];
      takeMatches(found, exact.get(host), authority);
      if (wildcard.size > 0)
        for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1))
          takeMatches(found, wildcard.get(host.slice(dot + 1)), authority);
      return found.length < 2 ? found : found.sort((a, b) => a.order - b.order);
    },
  };
}

type Place<T> = Indexed<T> & { readonly order: number };
type Group<T> = { readonly matchesHost: (authority: Authority) => boolean; readonly places: Place<T>[] };

function takeMatches<T>(found: Place<T>[], group: Group<T> | undefined, authority: Authority): void {
  if (group === undefined || !group.matchesHost(authority)) return;
  for (const place of group.places) {
    const { port } = place.pattern;
    if (port === undefined || port === authority.port) found.push(place);
  }
}
