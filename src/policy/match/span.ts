// A host pattern or a range of addresses as a span of keys, from the first to the last, compared as text: a name has its
// labels turned round, so that what is below it stands right behind it. Two spans are nested or apart, never crossed.
import { type Address, type Cidr, parseAddress } from '../authority/address.ts';
import type { HostPattern } from './host-pattern.ts';

export type Span = { readonly first: string; readonly last: string };

/** Every host of the pattern; its port is left to the reader. */
export function spanOfPattern({ host, kind, isWildcard }: HostPattern): Span {
  const address = kind === 'name' ? undefined : parseAddress(host);
  if (address !== undefined) return spanOfAddress(address);
  const key = `n${host.split('.').reverse().join('.')}`;
  // No name holds a character beyond ASCII.
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
