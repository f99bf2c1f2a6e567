// Files of a source by the paths that its author names. Nothing of the source runs meanwhile, and no link is followed out of it.
import { constants } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { BuildError } from '../build-error.ts';

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

export type Found =
  | { readonly kind: 'missing' }
  | { readonly kind: 'outside' }
  | { readonly kind: 'found'; readonly path: string };

/** `root`: the directory of the source, without links in its own path; `path` is relative to it, or absolute. */
export async function findInSource(root: string, path: string): Promise<Found> {
  const named = resolve(root, path);
  if (!isWithin(root, named)) return { kind: 'outside' };
  let real: string;
  try {
    real = await realpath(named);
  } catch {
    return { kind: 'missing' };
  }
  return isWithin(root, real) ? { kind: 'found', path: real } : { kind: 'outside' };
}

/** Undefined: there is no such file in the source. Throws a BuildError for one that is larger. */
export async function readSourceFile(
  root: string,
  path: string,
  maxBytes: number,
): Promise<string | undefined> {
  const found = await findInSource(root, path);
  if (found.kind !== 'found') return undefined;
  await using handle = await open(found.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  const stats = await handle.stat();
  if (!stats.isFile()) return undefined;
  if (stats.size > maxBytes) throw new BuildError('CREATE_FAILED', `${path} has more than ${maxBytes} bytes`);
  return handle.readFile('utf8');
}

function isWithin(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== '..' && !way.startsWith('../');
}
