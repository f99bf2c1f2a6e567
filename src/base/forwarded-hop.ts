// One entry of X-Forwarded-For: an address, which some proxies write with its port, and IPv6 then in brackets. Pure.
import { isIP } from 'node:net';

/** The address without port, brackets and the prefix of a mapped IPv4 address; undefined for what is no address. */
export function parseHop(text: string): string | undefined {
  const [, six, four] = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::\d{1,5})?$/i.exec(text.trim()) ?? [];
  const address = (six ?? four ?? text.trim()).replace(/^::ffff:(?=\d+\.)/i, '');
  return isIP(address) === 0 ? undefined : address;
}
