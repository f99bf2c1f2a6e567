// The lists of destinations in no_proxy and access_control: names by pattern, addresses by range.
// A range matches addresses only; no name is resolved here.
import { type Address, type Cidr, embeddedV4, parseAddress, parseCidr } from '../../base/address.ts';
import { type Authority, parsePort } from '../authority/authority.ts';
import { createHostIndex } from './host-index.ts';
import { type HostPattern, parseHostPattern } from './host-pattern.ts';
import {
  createSpanIndex,
  type SpanEntry,
  type SpanIndex,
  spanOfAddress,
  spanOfPattern,
  spanOfRange,
} from './span-index.ts';

/** One entry; a single address is a range of one. `port` undefined means every port. */
export type Destination = { readonly text: string; readonly port: number | undefined } & (
  | { readonly kind: 'names'; readonly pattern: HostPattern }
  | { readonly kind: 'range'; readonly range: Cidr }
);

export type DestinationList = {
  /** Every entry that matches the destination, port included; of a range that is listed twice, the first. */
  matches(authority: Authority): readonly Destination[];
  /** Is the address in one of the ranges, at this port? */
  hasAddress(address: Address, port: number): boolean;
};

/**
 * Parses one entry: a host, `*.suffix` or `.suffix`, an address (IPv6 also without brackets, as in NO_PROXY)
 * or a CIDR range, each with an optional port. A string says what is wrong, as a sentence.
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

/** Compiles the entries of one list. */
export function compileDestinations(entries: readonly Destination[]): DestinationList {
  const ranges = indexDestinations(entries.filter(({ kind }) => kind === 'range'));
  const names = createHostIndex(
    entries.flatMap((entry) => (entry.kind === 'names' ? [{ pattern: entry.pattern, value: entry }] : [])),
  );
  // `[::ffff:10.0.0.1]` leads where 10.0.0.1 leads, so a range contains it in either spelling.
  const rangesWith = (address: Address, port: number): readonly Destination[] =>
    ranges.containing([address, ...embeddedV4(address)].map(spanOfAddress), port).map(({ entry }) => entry);
  return {
    matches: (authority) => {
      const address = authority.kind === 'name' ? undefined : parseAddress(authority.host);
      return address === undefined
        ? names.matching(authority).map(({ value }) => value)
        : rangesWith(address, authority.port);
    },
    hasAddress: (address, port) => rangesWith(address, port).length > 0,
  };
}

/** An index of the entries, names as well as ranges, for comparing them with patterns. */
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
    return 'A range must be an address and a prefix with no bit set after it, as in 10.0.0.0/8';
  const port = portText === undefined ? undefined : parsePort(portText);
  if (typeof port === 'string') return 'A port must be a number from 1 to 65535 without leading zeros';
  return { text, port, kind: 'range', range };
}
