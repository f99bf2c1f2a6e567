// Finds the host patterns that match an authority, among thousands: exact hosts in one map, wildcards in another
// that is asked for each parent of the host. The maps only narrow; the compiled pattern itself decides.
import type { Authority } from './authority.ts';
import { compileHostPattern, type HostPattern } from './host-pattern.ts';

export type Indexed<T> = { readonly pattern: HostPattern; readonly value: T };

export type HostIndex<T> = {
  /** Entries that match, port included, in the order in which they were given. */
  matching(authority: Authority): readonly Indexed<T>[];
};

/** Compiles and indexes the entries once; asking changes nothing. */
export function createHostIndex<T>(entries: readonly Indexed<T>[]): HostIndex<T> {
  const exact = new Map<string, Place<T>[]>();
  const wildcard = new Map<string, Place<T>[]>();
  for (const [order, entry] of entries.entries()) {
    const map = entry.pattern.isWildcard ? wildcard : exact;
    const place = { order, entry, matches: compileHostPattern(entry.pattern) };
    const places = map.get(entry.pattern.host);
    if (places === undefined) map.set(entry.pattern.host, [place]);
    else places.push(place);
  }
  return {
    matching: (authority) => {
      const found = placesOf(exact, wildcard, authority.host).filter(({ matches }) => matches(authority));
      return found.toSorted((a, b) => a.order - b.order).map(({ entry }) => entry);
    },
  };
}

type Place<T> = {
  readonly order: number;
  readonly entry: Indexed<T>;
  readonly matches: (authority: Authority) => boolean;
};

type Places<T> = ReadonlyMap<string, readonly Place<T>[]>;

function placesOf<T>(exact: Places<T>, wildcard: Places<T>, host: string): readonly Place<T>[] {
  const own = exact.get(host) ?? [];
  if (wildcard.size === 0) return own;
  const all = [...own];
  for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1))
    for (const place of wildcard.get(host.slice(dot + 1)) ?? []) all.push(place);
  return all;
}
