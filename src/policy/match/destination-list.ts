// Lists of destinations as no_proxy and access_control hold them: names by pattern, addresses by range.
// A range meets addresses only; no name is resolved here.
import { type Address, type Cidr, embeddedV4, parseAddress, parseCidr } from '../authority/address.ts';
import { type Authority, parsePort } from '../authority/authority.ts';
import { createHostIndex } from './host-index.ts';
import { type HostPattern, parseHostPattern } from './host-pattern.ts';
import { spanOfAddress, spanOfPattern, spanOfRange } from './span.ts';
import { createSpanIndex, type SpanEntry, type SpanIndex } from './span-index.ts';

/** One entry; a single address is a range of one. `port` undefined means every port. */
export type Destination = { readonly text: string; readonly port: number | undefined } & (
  | { readonly kind: 'names'; readonly pattern: HostPattern }
  | { readonly kind: 'range'; readonly range: Cidr }
);

export type DestinationList = {
  /** Every entry that matches the destination, port included; a range that is listed twice, once. */
  matches(authority: Authority): readonly Destination[];
  /** Is the address in one of the ranges, at this port? */
  holdsAddress(address: Address, port: number): boolean;
};

/**
 * Reads one entry: a host, `*.suffix` or `.suffix`, an address (IPv6 also without brackets, as NO_PROXY has it)
 * or a CIDR range, each with an optional port. A string is the fault, as a sentence.
 */
export function parseDestination(text: string): Destination | string {
  const range = /^([^/]+\/[0-9]+)(?::([^:]*))?$/.exec(text);
  if (range !== null) return parseRange(text, range[1] ?? '', range[2]);
  const bareV6 = text.includes(':') ? parseCidr(text) : undefined;
  if (bareV6?.family === 6) return { text, port: undefined, kind: 'range', range: bareV6 };
  const pattern = parseHostPattern(text.startsWith('.') ? `*${text}` : text);
  if (typeof pattern === 'string') return pattern;
  const { port } = pattern;
  const address = pattern.kind === 'name' ? undefined : parseCidr(pattern.host);
  return address === undefined
    ? { text, port, kind: 'names', pattern }
    : { text, port, kind: 'range', range: address };
}

/** Makes a list ready to be asked. */
export function compileDestinations(entries: readonly Destination[]): DestinationList {
  const ranges = indexDestinations(entries.filter(({ kind }) => kind === 'range'));
  const names = createHostIndex(
    entries.flatMap((entry) => (entry.kind === 'names' ? [{ pattern: entry.pattern, value: entry }] : [])),
  );
  // `[::ffff:10.0.0.1]` leads where 10.0.0.1 leads, so a range holds it in either spelling.
  const holding = (address: Address, port: number): readonly Destination[] =>
    ranges.holding([address, ...embeddedV4(address)].map(spanOfAddress), port).map(({ entry }) => entry);
  return {
    matches: (authority) => {
      const address = authority.kind === 'name' ? undefined : parseAddress(authority.host);
      return address === undefined
        ? names.matching(authority).map(({ value }) => value)
        : holding(address, authority.port);
    },
    holdsAddress: (address, port) => holding(address, port).length > 0,
  };
}

/** For comparing the entries with patterns: names as well as ranges. */
export function indexDestinations(
  entries: readonly Destination[],
): SpanIndex<SpanEntry & { readonly entry: Destination }> {
  return createSpanIndex(
    entries.map((entry) => ({
      entry,
      port: entry.port,
      span: entry.kind === 'names' ? spanOfPattern(entry.pattern) : spanOfRange(entry.range),
    })),
  );
}

function parseRange(text: string, rangeText: string, portText: string | undefined): Destination | string {
  const range = parseCidr(rangeText);
  if (range === undefined)
    return 'A range should be an address and a prefix with no bit set behind it, as in 10.0.0.0/8';
  const port = portText === undefined ? undefined : parsePort(portText);
  if (typeof port === 'string') return 'A port should be a number from 1 to 65535 without leading zeros';
  return { text, port, kind: 'range', range };
}
