// A network whose hosts are silent until the test lets one respond. It needs a network namespace of its own: packets to a
// silent host cross a pair of virtual interfaces, and nobody at the other end takes them. A host that responds is an address
// of the namespace itself, where a server of the test listens.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const isRoot: boolean = process.getuid?.() === 0;
/** The command that runs another one in a new network namespace; its arguments follow. */
export const unshare: readonly string[] = [
  'unshare',
  ...(isRoot ? [] : ['--user', '--map-root-user']),
  '--net',
];

/** Whether this system provides a network namespace with a pair of virtual interfaces. */
export function canCreateNetwork(): boolean {
  const [command = '', ...args] = unshare;
  const pair = ['ip', 'link', 'add', 'v0', 'type', 'veth', 'peer', 'name', 'v1'];
  return spawnSync(command, [...args, ...pair], { stdio: 'ignore' }).status === 0;
}

/** SYNs are repeated after 1, 3 and 7 seconds; newer kernels repeat the first ones each second by default. */
const LINEAR_SYNS = '/proc/sys/net/ipv4/tcp_syn_linear_timeouts';
const SILENT = '02:00:00:00:00:09';

const OWN = { 4: '8.8.1.254', 6: '2606:4700::fffe' } as const;

/**
 * Furnishes the namespace of this process. The addresses are of 8.8.1.0/24 and 2606:4700::/64, because the proxy connects to
 * public ones; no packet leaves the namespace.
 */
export function createNetwork(silentAddresses: readonly string[]): void {
  if (existsSync(LINEAR_SYNS)) writeFileSync(LINEAR_SYNS, '0');
  ip([
    'link set lo up',
    'link add v0 type veth peer name v1',
    `addr add ${OWN[4]}/24 dev v0`,
    `addr add ${OWN[6]}/64 dev v0 nodad`,
    'link set v0 up',
    'link set v1 up',
    // A neighbour that is known needs no lookup, which would fail before the SYN is repeated.
    ...silentAddresses.map((address) => `neigh replace ${address} lladdr ${SILENT} nud permanent dev v0`),
  ]);
}

/** From now on packets to the address are delivered here; those that were lost before are not. */
export function letRespond(address: string): void {
  ip([`route add local ${address} dev lo src ${OWN[familyOf(address)]}`]);
}

/** How often the kernel's table is read: it reports no event when a connection changes. */
const TABLE_READ_MS = 20;

/** The host has died: it neither responds nor resets. What was sent before has arrived, so that nothing is repeated. */
export async function silence(address: string): Promise<void> {
  while (rowsOf(address).some(({ state, unacknowledged }) => state === ESTABLISHED && unacknowledged > 0))
    await delay(TABLE_READ_MS);
  ip([`route del local ${address} dev lo`]);
}

function familyOf(address: string): 4 | 6 {
  return address.includes(':') ? 6 : 4;
}

function ip(commands: readonly string[]): void {
  execFileSync('ip', ['-batch', '-'], { input: commands.join('\n'), stdio: ['pipe', 'ignore', 'inherit'] });
}

/** Resolves when a connection to the address has sent its SYN and `repeats` more without a response. */
export async function untilSynSent(address: string, repeats: number): Promise<void> {
  while (!rowsOf(address).some((row) => row.state === SYN_SENT && row.retransmitted >= repeats))
    await delay(TABLE_READ_MS);
}

type TableRow = { readonly state: string; readonly unacknowledged: number; readonly retransmitted: number };

/** The connections from and to the address. A server of both families has IPv4 addresses as IPv6 ones, with the same end. */
function rowsOf(address: string): readonly TableRow[] {
  const wanted = `${tableAddressOf(address)}:`;
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((file) => readFileSync(file, 'latin1'));
  return tables
    .join('\n')
    .split('\n')
    .flatMap((row): readonly TableRow[] => {
      const [, local = '', remote = '', state = '', queues = '', , retransmitted = ''] = row
        .trim()
        .split(/\s+/);
      if (!local.includes(wanted) && !remote.includes(wanted)) return [];
      const [unacknowledged, repeats] = [Number.parseInt(queues, 16), Number.parseInt(retransmitted, 16)];
      return [{ state, unacknowledged, retransmitted: repeats }];
    });
}

const ESTABLISHED = '01';
const SYN_SENT = '02';

/** As the kernel's tables spell it: words of 32 bits in the byte order of the machine, here little-endian. */
function tableAddressOf(address: string): string {
  const bytes = familyOf(address) === 6 ? bytesOfV6(address) : Buffer.from(address.split('.').map(Number));
  return bytes.swap32().toString('hex').toUpperCase();
}

function bytesOfV6(address: string): Buffer {
  const [front = '', back = ''] = address.split('::');
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const [left, right] = [groups(front), groups(back)];
  const bytes = Buffer.alloc(16);
  for (const [i, group] of left.entries()) bytes.writeUInt16BE(group, 2 * i);
  for (const [i, group] of right.entries()) bytes.writeUInt16BE(group, 16 - 2 * (right.length - i));
  return bytes;
}
