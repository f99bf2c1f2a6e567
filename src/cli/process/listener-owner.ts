// Which users listen at a TCP address of this machine, from the tables of the kernel. Linux only: elsewhere none is known.
import { lookup } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { type Address, parseAddress } from '../../base/address.ts';
import { isLocalAddress } from '../../sidecar/local-addresses.ts';

/** The uid of each listener here that a connection to `host` could reach; empty where the system does not show them. */
export async function listenersAt(host: string, port: number): Promise<readonly number[]> {
  const found = await lookup(LOOPBACK[host] ?? host, { all: true }).catch(() => []);
  const local = found.map(({ address }) => parseAddress(address)).filter((one) => one && isLocalAddress(one));
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  );
  return local.flatMap((address) =>
    tables.flatMap((table) => (address ? listenersIn(table, address, port) : [])),
  );
}

/** Where a connection to an unspecified address leads. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

const LISTEN = '0A';

/** `table`: lines of `sl local_address rem_address st … uid …`, addresses in hexadecimal. */
export function listenersIn(table: string, address: Address, port: number): readonly number[] {
  const wanted = spellingsOf(address);
  return table.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , uid] = line.trim().split(/\s+/);
    const [hex = '', portHex = ''] = local.split(':');
    const isThere = state === LISTEN && Number.parseInt(portHex, 16) === port && wanted.has(hex);
    return isThere ? Number(uid) : [];
  });
}

/** The address and the unspecified ones, in IPv4 and as mapped to IPv6, as the tables spell them. */
function spellingsOf({ family, bytes }: Address): ReadonlySet<string> {
  const mapped = family === 4 ? [hexOf([...MAPPED, ...bytes]), hexOf(new Uint8Array(4))] : [];
  return new Set([hexOf(bytes), hexOf(new Uint8Array(16)), ...mapped]);
}

const MAPPED: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/** Words of four bytes in the order of the machine, which is little-endian wherever this program runs. */
function hexOf(bytes: Iterable<number>): string {
  const all = Buffer.from([...bytes]);
  return all.swap32().toString('hex').toUpperCase();
}
