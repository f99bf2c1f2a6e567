// Finds the few host patterns that may match a host among thousands: exact hosts in one map, wildcards in another
// that is asked for each parent of the host. It narrows; the pattern itself decides.
import type { HostPattern } from './host-pattern.ts';

export type Indexed<T> = { readonly pattern: HostPattern; readonly value: T };

/** Answers keep the order in which the entries were given. */
export type HostIndex<T> = {
  /** Entries that may match this canonical host. */
  candidates(host: string): readonly Indexed<T>[];
  /** Entries whose hosts include every host of `pattern`; ports are left to the caller. */
  covering(pattern: HostPattern): readonly Indexed<T>[];
};

/** Indexes the entries once; asking does not change the index. */
export function createHostIndex<T>(entries: readonly Indexed<T>[]): HostIndex<T> {
  const exact = new Map<string, number[]>();
  const wildcard = new Map<string, number[]>();
  for (const [place, { pattern }] of entries.entries()) {
    const map = pattern.isWildcard ? wildcard : exact;
    const places = map.get(pattern.host);
    if (places === undefined) map.set(pattern.host, [place]);
    else places.push(place);
  }
  const at = (places: readonly number[]): readonly Indexed<T>[] =>
    places.toSorted((a, b) => a - b).flatMap((place) => entries[place] ?? []);
  const candidates = (host: string): readonly Indexed<T>[] =>
    at([...(exact.get(host) ?? []), ...placesAbove(wildcard, host)]);
  return {
    candidates,
    covering: ({ host, isWildcard }) =>
      isWildcard ? at([...(wildcard.get(host) ?? []), ...placesAbove(wildcard, host)]) : candidates(host),
  };
}

function placesAbove(wildcard: ReadonlyMap<string, readonly number[]>, host: string): number[] {
  const found: number[] = [];
  if (wildcard.size === 0) return found;
  for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1))
    found.push(...(wildcard.get(host.slice(dot + 1)) ?? []));
  return found;
}
