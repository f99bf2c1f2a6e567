// Replaces the socket file that a killed server has left: only a socket, and only if nobody listens there. Errors name the path and
// what to change.
import { randomBytes } from 'node:crypto';
import { link, lstat, rename, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';

/** How messages speak of it. */
export type SocketNames = {
  /** `the admin socket` */
  readonly what: string;
  /** What the operator can do about it: `change admin.listen`. */
  readonly cure: string;
};

/** A process that was killed leaves its socket behind, and nothing listens there. Anything else is not ours to remove. */
export async function removeStaleSocket(path: string, names: SocketNames): Promise<void> {
  const { what, cure } = names;
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new Error(`${what} ${path} cannot be created (${error.code}): ${cure}`);
  });
  if (found === undefined) return;
  if (!found.isSocket()) throw new Error(`${path} exists and is not a socket: remove it, or ${cure}`);
  await requireStale(path, { path, ...names });
  await removeAside(path, names);
}

/**
 * Another process that starts may have bound its own socket there since the check. So the socket is moved aside first,
 * where no other process replaces it, checked again, and put back if a process listens there after all.
 */
async function removeAside(path: string, names: SocketNames): Promise<void> {
  const aside = join(dirname(path), `.${randomBytes(4).toString('hex')}`);
  try {
    await rename(path, aside);
  } catch (error) {
    // Another process was faster; binding shows whether it listens there by now.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw new Error(`${names.what} ${path} cannot be replaced (${codeOf(error)}): ${names.cure}`, {
      cause: error,
    });
  }
  try {
    await requireStale(aside, { path, ...names });
  } catch (error) {
    // Not by rename, which would replace what a third process has bound.
    await link(aside, path);
    throw error;
  } finally {
    await unlink(aside);
  }
}

/** Throws an Error about `path` unless connections to `at` are refused. */
async function requireStale(
  at: string,
  { path, what, cure }: SocketNames & { readonly path: string },
): Promise<void> {
  const code = await connectError(at);
  if (code === undefined) throw new Error(`another process listens at ${what} ${path}: end it, or ${cure}`);
  if (code !== 'ECONNREFUSED')
    throw new Error(`${what} ${path} exists and cannot be connected to (${code}): ${cure}`);
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'an unknown error';
}

/** The error code of a connection to `path`; undefined when it succeeds. */
async function connectError(path: string): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect({ path }, () => resolve(undefined));
  socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'an unknown error'));
  const code = await promise;
  socket.destroy();
  return code;
}
