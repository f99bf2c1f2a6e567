// The client's address behind proxies: X-Forwarded-For is trusted only where a proxy that the operator names wrote it, for
// every other sender can write anything there. Pure.
import { BlockList, isIP, type Socket } from 'node:net';
import { parseHop } from '../../base/forwarded-hop.ts';

export type TrustedProxies = Pick<BlockList, 'check'>;

export type ClientAddress = {
  readonly host: string | undefined;
  /** Undefined behind a proxy, which does not pass on the client's port. */
  readonly port: number | undefined;
};

export const noProxies: TrustedProxies = new BlockList();

/** Undefined when one of them is neither an address nor a range. */
export function parseTrustedProxies(entries: readonly string[]): TrustedProxies | undefined {
  const list = new BlockList();
  for (const entry of entries) {
    const [, address = '', prefix] = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
    const family = isIP(address);
    const most = family === 4 ? 32 : 128;
    const bits = Number(prefix ?? most);
    if (family === 0 || bits > most) return undefined;
    list.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

/**
 * The address behind the trusted proxies: from the right, the first that is not one of them. Its sender may have invented
 * everything to the left of it.
 */
export function clientAddress(
  { remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>,
  forwardedFor: string | undefined,
  trusted: TrustedProxies,
  /** The peer of a unix socket, which has no address, is trusted. */
  trustsLocal: boolean = false,
): ClientAddress {
  const peer = parseHop(remoteAddress ?? '');
  const hops = forwardedFor?.split(',').toReversed() ?? [];
  let client = peer ?? (trustsLocal ? parseHop(hops.shift() ?? '') : undefined);
  for (const hop of hops) {
    const address = parseHop(hop);
    if (client === undefined || address === undefined || !isTrusted(client, trusted)) break;
    client = address;
  }
  return { host: client, port: client === peer ? remotePort : undefined };
}

/** Whether a connection comes from a trusted proxy. */
export function isTrustedPeer(remoteAddress: string, trusted: TrustedProxies): boolean {
  const address = parseHop(remoteAddress);
  return address !== undefined && isTrusted(address, trusted);
}

function isTrusted(address: string, trusted: TrustedProxies): boolean {
  return trusted.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}
