// The snapshot `base`: the programs of the host. /usr of the host is bound read-only when a box starts; the snapshot holds
// the links to it and a small /etc. What only root may read there is left out.
import { chmod, copyFile, lstat, mkdir, readdir, readlink, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../command.ts';

/** A path below /usr that only root or its group may read on the host. */
export type HiddenPath = { readonly path: string; readonly isDirectory: boolean };

/** In the root of a merged system these are links into /usr. */
const USR_LINKS: readonly string[] = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];
const DIRECTORIES: readonly string[] = [
  'usr',
  'etc',
  'home',
  'root',
  'run',
  'opt',
  'srv',
  'mnt',
  'var',
  'var/lib',
];
const ALTERNATIVES = '/etc/alternatives';

/** Fills the empty directory `root`. */
export async function createBase(root: string): Promise<{ readonly hidden: readonly HiddenPath[] }> {
  await createRoot(root);
  return { hidden: await findHidden('/usr') };
}

/** Links into /usr, and an /etc without accounts or settings of this machine. `root` is empty. */
export async function createRoot(root: string): Promise<void> {
  for (const name of DIRECTORIES) await createDirectory(join(root, name));
  await linkUsr(root);
  await symlink('../usr/lib/os-release', join(root, 'etc/os-release'));
  // The dynamic linker finds libraries in other directories by it.
  await copyFile('/etc/ld.so.cache', join(root, 'etc/ld.so.cache')).catch(() => undefined);
  await copyAlternatives(join(root, 'etc/alternatives'));
}

/** The links of the root of this machine into its /usr. */
export async function linkUsr(root: string): Promise<void> {
  for (const name of USR_LINKS) {
    const stats = await lstat(`/${name}`).catch(() => undefined);
    if (stats === undefined) continue;
    const target = stats.isSymbolicLink() ? await readlink(`/${name}`) : '';
    if (!/^\/?usr\/[a-z0-9]+$/.test(target))
      throw new Error(`/${name} of this machine is no link into /usr: import a snapshot instead of \`base\``);
    await symlink(target.replace(/^\//, ''), join(root, name));
  }
}

/** Whatever the umask: the user of a box reads it. */
async function createDirectory(path: string): Promise<void> {
  await mkdir(path);
  await chmod(path, 0o755);
}

/** Links of /usr/bin such as `awk` lead through them. */
async function copyAlternatives(directory: string): Promise<void> {
  await createDirectory(directory);
  for (const name of await readdir(ALTERNATIVES).catch(() => [])) {
    const target = await readlink(join(ALTERNATIVES, name)).catch(() => '');
    if (target.startsWith('/usr/')) await symlink(target, join(directory, name));
  }
}

/** What others than the owner and the group may not read; of such a directory, nothing below. */
export async function findHidden(directory: string): Promise<readonly HiddenPath[]> {
  const { code, stdout, stderr } = await runCommand([
    ...['find', directory, '-not', '-type', 'l'],
    ...['(', '-not', '-perm', '-o=r', '-o', '-type', 'd', '-not', '-perm', '-o=x', ')'],
    ...['-printf', String.raw`%y%p\0`, '-prune'],
  ]);
  // Without root, find reports directories that it may not read, which it has printed by then.
  if (code === undefined) throw new Error(`${directory} could not be searched: ${stderr}`);
  const found = stdout.split('\0').filter((one) => one !== '');
  return found.map((one) => ({ path: one.slice(1), isDirectory: one.startsWith('d') }));
}
