// Lists of destinations as no_proxy and access_control hold them: names by pattern, addresses by range.
// A range meets addresses only; no name is resolved here.
import { type Address, type Cidr, cidrContains, embeddedV4, parseAddress, parseCidr } from './address.ts';
import { type Authority, parsePort } from './authority.ts';
import { createHostIndex } from './host-index.ts';
import { type HostPattern, parseHostPattern } from './host-pattern.ts';

/** One entry; a single address is a range of one. `port` undefined means every port. */
export type Destination = { readonly text: string; readonly port: number | undefined } & (
  | { readonly kind: 'names'; readonly pattern: HostPattern }
  | { readonly kind: 'range'; readonly range: Cidr }
);

export type DestinationList = {
  /** Every entry that matches the destination, port included. */
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
  const isBareV6 = parseAddress(text)?.family === 6;
  const pattern = parseHostPattern(isBareV6 ? `[${text}]` : text.startsWith('.') ? `*${text}` : text);
  if (typeof pattern === 'string') return pattern;
  const address = pattern.kind === 'name' ? undefined : parseCidr(pattern.host);
  return address === undefined
    ? { text, port: pattern.port, kind: 'names', pattern }
    : { text, port: pattern.port, kind: 'range', range: address };
}

/** Makes a list ready to be asked. */
export function compileDestinations(entries: readonly Destination[]): DestinationList {
  const ranges = entries.filter((entry) => entry.kind === 'range');
  const names = createHostIndex(
    entries.flatMap((entry) => (entry.kind === 'names' ? [{ pattern: entry.pattern, value: entry }] : [])),
  );
  const holding = (address: Address): readonly Destination[] => {
    // `[::ffff:10.0.0.1]` leads where 10.0.0.1 leads, so a range holds it in either spelling.
    const spellings = [address, ...embeddedV4(address)];
    return ranges.filter(({ range }) => spellings.some((spelling) => cidrContains(range, spelling)));
  };
  return {
    matches: (authority) => {
      const address = authority.kind === 'name' ? undefined : parseAddress(authority.host);
      if (address === undefined) return names.matching(authority).map(({ value }) => value);
      return holding(address).filter(({ port }) => port === undefined || port === authority.port);
    },
    holdsAddress: (address, port) =>
      holding(address).some((entry) => entry.port === undefined || entry.port === port),
  };
}

function parseRange(text: string, rangeText: string, portText: string | undefined): Destination | string {
  const range = parseCidr(rangeText);
  if (range === undefined)
    return 'A range should be an address and a prefix with no bit set behind it, as in 10.0.0.0/8';
  const port = portText === undefined ? undefined : parsePort(portText);
  if (typeof port === 'string') return 'A port should be a number from 1 to 65535 without leading zeros';
  return { text, port, kind: 'range', range };
}
