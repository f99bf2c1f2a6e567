// The state directory: `secret` (0700) holds the keys, the admin token and the sealed state, `public` (0755) what clients may
// read as another user. Both are created whatever the umask is.
import { type Stats, chmodSync, lstatSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readInput } from '../../base/input-error.ts';
import { codeOf, createDirectories, fileError, syncDirectory } from '../../tls/pem-files.ts';

export function secretPart(directory: string): string {
  return join(directory, 'secret');
}

export function publicPart(directory: string): string {
  return join(directory, 'public');
}

const SECRET_NAMES: readonly string[] = ['ca.key', 'admin-token', 'state.key', 'sandboxes', 'state.lock'];
const PUBLIC_NAMES: readonly string[] = ['ca.pem'];

/**
 * Creates what is missing; directories above get mode 0700. Returns the names of the files that an older version kept in
 * the directory itself: they are in their part now, but for those of `configured`, which the operator names by their path: in
 * their place a new CA, token or key would be created. The mode of a directory that exists is not widened.
 */
export async function prepareStateDirectory(
  directory: string,
  configured: readonly string[] = [],
): Promise<readonly string[]> {
  await readInput(() => createParts(directory));
  const present = new Set(readdirSync(directory));
  const moves = [
    ...PUBLIC_NAMES.map((name) => ({ name, to: publicPart(directory) })),
    ...SECRET_NAMES.map((name) => ({ name, to: secretPart(directory) })),
  ].filter(
    ({ name }) => present.has(name) && !configured.some((file) => isSame(file, join(directory, name))),
  );
  if (moves.length === 0) return [];
  const { moveStateFiles } = await import('./state-migration.ts');
  await moveStateFiles(directory, moves);
  return moves.map(({ name }) => name);
}

/** By whatever path. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((file) => statSync(file, { throwIfNoEntry: false }));
  return a !== undefined && b !== undefined && a.ino === b.ino && a.dev === b.dev;
}

async function createParts(directory: string): Promise<void> {
  createDirectories(dirname(directory), 0o700);
  createDirectory(directory, 0o755);
  // Its owner could put another directory in the place of a part. It may be a link, which the operator names.
  requireOwner(directory, statSync(directory));
  const secret = secretPart(directory);
  const isNew = createDirectory(secret, 0o700);
  const { mode } = requireOwn(secret);
  if ((mode & 0o077) !== 0) chmodSync(secret, 0o700);
  createDirectory(publicPart(directory), 0o755);
  requireOwn(publicPart(directory));
  if (!isNew) return;
  await syncDirectory(dirname(directory));
  await syncDirectory(directory);
}

/** False if it exists. Its mode is set once more, because the umask may have removed bits. */
function createDirectory(directory: string, mode: number): boolean {
  try {
    mkdirSync(directory, { mode });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    if (statSync(directory).isDirectory()) return false;
    throw fileError(directory, 'not a directory', 'Move it away, or set another state_dir', error);
  }
  chmodSync(directory, mode);
  return true;
}

/** Files are created in it under fixed names, so no other user may replace them: clients trust those of the public part. */
function requireOwn(directory: string): Stats {
  const stats = lstatSync(directory);
  if (!stats.isDirectory())
    throw fileError(directory, 'a symbolic link', 'Replace it by a directory, or set another state_dir');
  requireOwner(directory, stats);
  return stats;
}

function requireOwner(directory: string, { uid }: Stats): void {
  const ours = process.getuid?.() ?? uid;
  if (uid === ours || uid === 0) return;
  const found = `the directory belongs to uid ${uid}, but this process runs as uid ${ours}`;
  throw fileError(directory, found, `chown ${ours} ${directory}, or set another state_dir`);
}
