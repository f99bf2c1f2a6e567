// Starts the suite again in namespaces of its own: a network with nothing but loopback, on which the origin has an address that
// is not one of loopback, host names of the origin, and processes that end with it. No request of a client can leave.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostNames, ORIGIN_ADDRESS } from './rules.ts';

const SETUP = `set -e
ip link set lo up
ip address add ${ORIGIN_ADDRESS}/32 dev lo
mount --bind "$1" /etc/hosts
mount --bind /dev/null /etc/resolv.conf
shift
exec "$@"`;

/** Returns the exit code. Throws an Error that says what the machine lacks. */
export function runInNamespaces(command: readonly string[], folder: string): number {
  const hosts = join(folder, 'hosts');
  writeFileSync(hosts, `127.0.0.1 localhost\n${ORIGIN_ADDRESS} ${hostNames.join(' ')}\n`);
  const asRoot = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  const spaces = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const args = [...asRoot, ...spaces, 'sh', '-c', SETUP, 'sh', hosts, ...command];
  const { status, error } = spawnSync('unshare', args, { stdio: 'inherit' });
  if (error !== undefined)
    throw new Error(`unshare cannot be started (${error.message}): install util-linux and iproute2`);
  return status ?? 1;
}
