// A mount and a network namespace for the faults that need them: DNS on port 53 of a private loopback, a private resolver
// configuration and small private file systems. Independent of the faults.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MARK = 'SALLYPORT_CHAOS_NAMESPACE';
const isRoot: boolean = process.getuid?.() === 0;
const unshare: readonly string[] = [
  ...(isRoot ? [] : ['--user', '--map-root-user']),
  '--mount',
  '--net',
  '--pid',
  '--fork',
  '--kill-child',
  '--mount-proc',
];

/** Whether this process runs in such a namespace. */
export function isInNamespace(): boolean {
  return process.env[MARK] === '1';
}

/** Runs this program in a new namespace and returns its exit code; undefined if the system does not provide one. */
export function runInNamespace(): number | undefined {
  const probe = spawnSync('unshare', [...unshare, 'ip', 'link', 'set', 'lo', 'up'], { stdio: 'ignore' });
  if (probe.status !== 0) return undefined;
  const args = [...unshare, process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const { status } = spawnSync('unshare', args, { stdio: 'inherit', env: { ...process.env, [MARK]: '1' } });
  return status ?? 1;
}

/** Brings up loopback and configures a resolver that queries it with a short timeout. */
export function furnishNamespace(): void {
  const directory = mkdtempSync(join(tmpdir(), 'sallyport-chaos-'));
  const file = join(directory, 'resolv.conf');
  writeFileSync(file, 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
  for (const [command, ...args] of [
    ['ip', 'link', 'set', 'lo', 'up'],
    ['mount', '--bind', file, '/etc/resolv.conf'],
  ] as const) {
    if (spawnSync(command, args, { stdio: 'inherit' }).status !== 0) throw new Error(`${command} failed`);
  }
  // Mounts must stay: the rows use them.
  rmSync(directory, { recursive: true });
}
