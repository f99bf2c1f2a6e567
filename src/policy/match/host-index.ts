// Finds the host patterns that match an authority, among thousands: exact hosts in one map, wildcards in another that
// is searched for each parent of the host. The maps only find candidates; the compiled pattern decides.
import type { Authority } from '../authority/authority.ts';
import { compileHostPattern, type HostPattern } from './host-pattern.ts';

export type Indexed<T> = { readonly pattern: HostPattern; readonly value: T };

export type HostIndex<T> = {
  /** Entries that match, port included, in the order given. */
  matching(authority: Authority): readonly Indexed<T>[];
};

/** Indexes the entries once. Entries of one host share its compiled pattern and differ by port alone. */
export function createHostIndex<T>(entries: readonly Indexed<T>[]): HostIndex<T> {
  const exact = new Map<string, Group<T>>();
  const wildcard = new Map<string, Group<T>>();
  for (const [order, { pattern, value }] of entries.entries()) {
    const map = pattern.isWildcard ? wildcard : exact;
    const entry = { pattern, value, order };
    const group = map.get(pattern.host);
    if (group !== undefined) group.entries.push(entry);
    else map.set(pattern.host, { matchesHost: undefined, entries: [entry] });
  }
  return {
    matching: (authority) => {
      const { host } = authority;
      const found: Ordered<T>[] = [];
      addMatches(found, exact.get(host), authority);
      if (wildcard.size > 0)
        for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1))
          addMatches(found, wildcard.get(host.slice(dot + 1)), authority);
      return found.length < 2 ? found : found.sort((a, b) => a.order - b.order);
    },
  };
}

type Ordered<T> = Indexed<T> & { readonly order: number };
type Group<T> = {
  /** Created on first use: most of ten thousand hosts are never asked for. */
  matchesHost: ((authority: Authority) => boolean) | undefined;
  readonly entries: [Ordered<T>, ...Ordered<T>[]];
};

function addMatches<T>(found: Ordered<T>[], group: Group<T> | undefined, authority: Authority): void {
  if (group === undefined) return;
  group.matchesHost ??= compileHostPattern({ ...group.entries[0].pattern, port: undefined });
  if (!group.matchesHost(authority)) return;
  for (const entry of group.entries) {
    const { port } = entry.pattern;
    if (port === undefined || port === authority.port) found.push(entry);
  }
}
