// Which addresses belong to this machine: the kernel accepts connections to them on any interface. Node lists only
// interfaces with a carrier, but the kernel also accepts the address of one without (an unused bridge). So on Linux the
// kernel's own tables are read as well.
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { type Address, type Cidr, cidrContains, parseAddress, parseCidr } from '../base/address.ts';

/** Not cached: interfaces come and go. */
export function isLocalAddress(address: Address): boolean {
  const listed = Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some((one) => parseAddress(one.address.split('%')[0] ?? '')?.text === address.text),
  );
  return listed || kernelRanges(address.family).some((range) => cidrContains(range, address));
}

/** The local ranges of /proc/net/fib_trie: each `|-- ADDRESS` is followed by its prefixes, `/32 host LOCAL` among them. */
export function parseFibTrie(text: string): Cidr[] {
  const found: Cidr[] = [];
  let leaf = '';
  for (const line of text.split('\n')) {
    leaf = /\|-- (\S+)$/.exec(line)?.[1] ?? leaf;
    const prefix = /^\s+\/(\d+) host LOCAL$/.exec(line)?.[1];
    const range = prefix === undefined ? undefined : parseCidr(`${leaf}/${prefix}`);
    if (range) found.push(range);
  }
  return found;
}

/** The addresses of /proc/net/if_inet6: each line begins with 32 hexadecimal digits. */
export function parseInet6(text: string): Cidr[] {
  return text.split('\n').flatMap((line) => {
    const groups = /^[0-9a-f]{32}(?= )/.exec(line)?.[0].match(/.{4}/g);
    return (groups && parseCidr(groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':'))) ?? [];
  });
}

function kernelRanges(family: 4 | 6): Cidr[] {
  try {
    return family === 4
      ? parseFibTrie(readFileSync('/proc/net/fib_trie', 'utf8'))
      : parseInet6(readFileSync('/proc/net/if_inet6', 'utf8'));
  } catch {
    return []; // not Linux, or no address of that family
  }
}
