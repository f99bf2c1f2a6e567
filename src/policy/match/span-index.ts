// Finds the spans that hold another or meet it, among thousands. Since spans are nested or apart, the last that begins
// before a key is the narrowest that holds it, or lies beside that in one that does: one search, then a walk outwards.
// It knows ports, because ten thousand entries may be one host; what a span stands for it does not know.
import type { Span } from './span.ts';

/** `port` undefined means every port. */
export type SpanEntry = { readonly span: Span; readonly port: number | undefined };

export type SpanIndex<T extends SpanEntry> = {
  /** Entries that hold all of one of the spans at this port, in the order in which they were given; of equal ones the first. */
  holding(spans: readonly Span[], port: number | undefined): readonly T[];
  /** An entry that shares something with the span, at a port that both have. */
  meeting(span: Span, port: number | undefined): T | undefined;
};

/** Sorts the entries once; asking changes nothing, and costs a step for each span around the one asked for. */
export function createSpanIndex<T extends SpanEntry>(entries: readonly T[]): SpanIndex<T> {
  const nodes = nest(entries);
  const byPort = placesByPort(nodes);
  const holding = (spans: readonly Span[], port: number | undefined): readonly T[] => {
    const found = new Set<Place<T>>();
    for (const span of spans)
      for (let node = innermost(nodes, span); node !== undefined; node = node.parent)
        for (const place of [node.places.get(undefined), node.places.get(port)])
          if (place !== undefined) found.add(place);
    return [...found].sort((a, b) => a.order - b.order).map(({ entry }) => entry);
  };
  const within = (span: Span, port: number | undefined): T | undefined => {
    const places = byPort.get(port) ?? [];
    const place = places[countBefore(places.length, (i) => (places[i]?.span.first ?? '') < span.first)];
    return place !== undefined && place.span.first <= span.last ? place : undefined;
  };
  return {
    holding,
    meeting: (span, port) =>
      port === undefined
        ? (innermost(nodes, span)?.earliest.entry ?? within(span, ANY_PORT))
        : (holding([span], port)[0] ?? within(span, undefined) ?? within(span, port)),
  };
}

type Place<T> = { readonly entry: T; readonly order: number };

/** One span with all its entries, by port. */
type Node<T> = {
  readonly span: Span;
  readonly parent: Node<T> | undefined;
  readonly places: Map<number | undefined, Place<T>>;
  /** Of this span and those around it. */
  readonly earliest: Place<T>;
};

function nest<T extends SpanEntry>(entries: readonly T[]): readonly Node<T>[] {
  const places = entries.map((entry, order) => ({ entry, order }));
  // The wider one first, then the author's order.
  places.sort(
    (a, b) =>
      compare(a.entry.span.first, b.entry.span.first) ||
      compare(b.entry.span.last, a.entry.span.last) ||
      a.order - b.order,
  );
  const nodes: Node<T>[] = [];
  for (const place of places) {
    const { span, port } = place.entry;
    let node = nodes.at(-1);
    if (node?.span.first !== span.first || node.span.last !== span.last) {
      const parent = around(node, span);
      const earliest = parent !== undefined && parent.earliest.order < place.order ? parent.earliest : place;
      node = { span, parent, places: new Map(), earliest };
      nodes.push(node);
    }
    if (!node.places.has(port)) node.places.set(port, place);
  }
  return nodes;
}

// Ports begin at 1.
const ANY_PORT = 0;

/** Entries in the order of their spans: those of each port, those of every port, and one for each span. */
function placesByPort<T extends SpanEntry>(
  nodes: readonly Node<T>[],
): ReadonlyMap<number | undefined, readonly T[]> {
  const byPort = new Map<number | undefined, T[]>();
  const add = (port: number | undefined, entry: T): void => {
    const list = byPort.get(port);
    if (list === undefined) byPort.set(port, [entry]);
    else list.push(entry);
  };
  for (const { places } of nodes) {
    for (const [port, { entry }] of places) add(port, entry);
    const [any] = places.values();
    if (any !== undefined) add(ANY_PORT, any.entry);
  }
  return byPort;
}

/** The narrowest node that holds all of the span. */
function innermost<T>(nodes: readonly Node<T>[], span: Span): Node<T> | undefined {
  return around(
    nodes[countBefore(nodes.length, (i) => (nodes[i]?.span.first ?? '') <= span.first) - 1],
    span,
  );
}

function around<T>(from: Node<T> | undefined, { last }: Span): Node<T> | undefined {
  let node = from;
  while (node !== undefined && node.span.last < last) node = node.parent;
  return node;
}

/** How many of `length` places, in order, are before the one looked for. */
function countBefore(length: number, isBefore: (i: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
