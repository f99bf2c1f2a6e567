// Finds the host patterns and address ranges that contain or overlap another one, among ten thousand, ports included.
//
// Each is a span of keys, from the first to the last, compared as text. In a name the labels are reversed, so that the
// hosts below a name directly follow it. Two spans are nested or disjoint, never crossed. So each span has at most one
// narrowest span around it, its parent, and all spans that contain a key are a chain of parents:
//
//   *.test      first `ntest.`    last `ntest.\xff`     no parent
//   *.b.test    first `ntest.b.`  last `ntest.b.\xff`   parent *.test
//   a.b.test    first `ntest.b.a` last `ntest.b.a`      parent *.b.test
//
// To find what contains `z.b.test`, a binary search finds the last span whose first key is not after `ntest.b.z`
// (a.b.test). From there the search climbs to the parent until the span contains the key (*.b.test), and then collects
// every span above it (*.test).
import { type Address, type Cidr, parseAddress } from '../../base/address.ts';
import type { HostPattern } from './host-pattern.ts';

export type Span = { readonly first: string; readonly last: string };

/** `port` undefined means every port. */
export type SpanEntry = { readonly span: Span; readonly port: number | undefined };

export type SpanIndex<T extends SpanEntry> = {
  /** Entries that contain all of one of the spans at this port, in the order given; of equal entries the first. */
  containing(spans: readonly Span[], port: number | undefined): readonly T[];
  /** An entry that has a host in common with the span, at a port that both have. */
  overlapping(span: Span, port: number | undefined): T | undefined;
};

/** Every host of the pattern, whatever its port. */
export function spanOfPattern({ host, kind, isWildcard }: HostPattern): Span {
  const address = kind === 'name' ? undefined : parseAddress(host);
  if (address !== undefined) return spanOfAddress(address);
  const key = `n${host.split('.').reverse().join('.')}`;
  // No name contains a character beyond ASCII.
  return isWildcard ? { first: `${key}.`, last: `${key}.\xff` } : { first: key, last: key };
}

export function spanOfAddress({ family, bytes }: Address): Span {
  const key = String.fromCharCode(family, ...bytes);
  return { first: key, last: key };
}

export function spanOfRange({ family, bytes, prefix }: Cidr): Span {
  const last = bytes.map((byte, i) => byte | (0xff >> Math.min(8, Math.max(0, prefix - i * 8))));
  return { first: String.fromCharCode(family, ...bytes), last: String.fromCharCode(family, ...last) };
}

/** Sorts the entries once. A lookup costs a binary search and a step for each span around the one that is looked up. */
export function createSpanIndex<T extends SpanEntry>(entries: readonly T[]): SpanIndex<T> {
  const nodes = nest(entries);
  const sorted = sortedByPort(nodes);
  const containing = (spans: readonly Span[], port: number | undefined): readonly T[] => {
    const found = new Set<Ordered<T>>();
    for (const span of spans)
      for (let node = narrowestAround(nodes, span); node !== undefined; node = node.parent)
        for (const ordered of [node.byPort.get(undefined), node.byPort.get(port)])
          if (ordered !== undefined) found.add(ordered);
    return [...found].sort((a, b) => a.order - b.order).map(({ entry }) => entry);
  };
  const inside = (span: Span, list: number | typeof ALL | undefined): T | undefined => {
    const candidates = sorted.get(list) ?? [];
    const entry = candidates[countWhile(candidates, ({ span: { first } }) => first < span.first)];
    return entry !== undefined && entry.span.first <= span.last ? entry : undefined;
  };
  return {
    containing,
    // Spans never cross, so what overlaps a span either contains it or is inside it.
    overlapping: (span, port) =>
      port === undefined
        ? (narrowestAround(nodes, span)?.earliest.entry ?? inside(span, ALL))
        : (containing([span], port)[0] ?? inside(span, undefined) ?? inside(span, port)),
  };
}

/** An entry with its index in the order given. */
type Ordered<T> = { readonly entry: T; readonly order: number };

/** One span with its entries, of equal ones the first. */
type Node<T> = {
  readonly span: Span;
  readonly parent: Node<T> | undefined;
  readonly byPort: Map<number | undefined, Ordered<T>>;
  /** The entry given first, of this span and its parents. */
  readonly earliest: Ordered<T>;
};

/** One node for each span, sorted by first key, a parent before its children. */
function nest<T extends SpanEntry>(entries: readonly T[]): readonly Node<T>[] {
  const sorted = entries.map((entry, order) => ({ entry, order }));
  sorted.sort(
    (a, b) =>
      compare(a.entry.span.first, b.entry.span.first) ||
      compare(b.entry.span.last, a.entry.span.last) ||
      a.order - b.order,
  );
  const nodes: Node<T>[] = [];
  for (const ordered of sorted) {
    const { span, port } = ordered.entry;
    let node = nodes.at(-1);
    if (node?.span.first !== span.first || node.span.last !== span.last) {
      const parent = climb(node, span);
      const earliest =
        parent !== undefined && parent.earliest.order < ordered.order ? parent.earliest : ordered;
      node = { span, parent, byPort: new Map(), earliest };
      nodes.push(node);
    }
    if (!node.byPort.has(port)) node.byPort.set(port, ordered);
  }
  return nodes;
}

/** The list with one entry of each span, whatever its port. */
const ALL = 'all';

/** Entries sorted by first key: a list for each port, one for entries of every port (undefined), and ALL. */
function sortedByPort<T extends SpanEntry>(
  nodes: readonly Node<T>[],
): ReadonlyMap<number | typeof ALL | undefined, readonly T[]> {
  const lists = new Map<number | typeof ALL | undefined, T[]>();
  const add = (list: number | typeof ALL | undefined, entry: T): void => {
    const found = lists.get(list);
    if (found === undefined) lists.set(list, [entry]);
    else found.push(entry);
  };
  for (const { byPort } of nodes) {
    for (const [port, { entry }] of byPort) add(port, entry);
    const [any] = byPort.values();
    if (any !== undefined) add(ALL, any.entry);
  }
  return lists;
}

/** The narrowest node that contains all of the span. */
function narrowestAround<T>(nodes: readonly Node<T>[], span: Span): Node<T> | undefined {
  return climb(nodes[countWhile(nodes, (node) => node.span.first <= span.first) - 1], span);
}

/** From a node that begins no later than the span, up to the first one that contains it. */
function climb<T>(from: Node<T> | undefined, { last }: Span): Node<T> | undefined {
  let node = from;
  while (node !== undefined && node.span.last < last) node = node.parent;
  return node;
}

/** How many items at the front of a sorted list satisfy the test: a binary search. */
function countWhile<T>(sorted: readonly T[], test: (item: T) => boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(sorted[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
