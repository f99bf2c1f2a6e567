// Binds the admin API to a port, or to a unix socket that only its owner can open. Its errors say which setting to change.
// Independent of HTTP.
import { randomBytes } from 'node:crypto';
import { link, lstat, rename, unlink } from 'node:fs/promises';
import { type AddressInfo, connect, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { type ListenAddress, formatAddress, listenerUrl } from '../base/listen-address.ts';

export type AdminListen = ListenAddress | { readonly path: string };
/** `url`: `http://127.0.0.1:3129` or `unix:/path`. */
export type AdminAddress = { readonly url: string; readonly address: string; readonly port: number };

const SETTING = 'change admin.listen or SALLYPORT_ADMIN_LISTEN';
// The kernel truncates a longer path (sun_path), and would bind elsewhere.
const MAX_PATH_BYTES = 103;

/** Throws an Error that names the address. */
export async function listenAt(server: Server, at: AdminListen): Promise<AdminAddress> {
  if ('path' in at) return listenAtPath(server, at.path);
  await bound(server, formatAddress(at), () => server.listen({ host: at.host, port: at.port }));
  const { address, port } = server.address() as AddressInfo;
  return { url: listenerUrl({ address, port }), address, port };
}

async function listenAtPath(server: Server, path: string): Promise<AdminAddress> {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES)
    throw new Error(`the admin socket ${path} is over ${MAX_PATH_BYTES} bytes long: ${SETTING}`);
  await removeStale(path);
  await bound(server, path, () => {
    // bind() happens within this call and creates the file, so others can open it at no moment.
    const before = process.umask(0o177);
    try {
      server.listen({ path });
    } finally {
      process.umask(before);
    }
  });
  return { url: `unix:${path}`, address: path, port: 0 };
}

async function bound(server: Server, where: string, listen: () => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onError = (error: NodeJS.ErrnoException): void => reject(new Error(describeError(where, error)));
  server.once('error', onError);
  server.once('listening', resolve);
  listen();
  await promise;
  server.off('error', onError);
}

function describeError(where: string, { code = 'an unknown error' }: NodeJS.ErrnoException): string {
  switch (code) {
    case 'EADDRINUSE':
      return `the admin API cannot listen at ${where}, which is in use: end what listens there, or ${SETTING}`;
    case 'EACCES':
    case 'EPERM':
      return `the admin API may not listen at ${where}: ${SETTING}`;
    default:
      return `the admin API cannot listen at ${where} (${code}): ${SETTING}`;
  }
}

/** A process that was killed leaves its socket behind, and nothing listens there. Anything else is not ours to remove. */
async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new Error(`the admin socket ${path} cannot be created (${error.code}): ${SETTING}`);
  });
  if (found === undefined) return;
  if (!found.isSocket()) throw new Error(`${path} exists and is not a socket: remove it, or ${SETTING}`);
  await requireStale(path, path);
  await removeAside(path);
}

/**
 * Another process that starts may have bound its own socket there since the check. So the socket is moved aside first,
 * where no other process replaces it, checked again, and put back if a process listens there after all.
 */
async function removeAside(path: string): Promise<void> {
  const aside = join(dirname(path), `.${randomBytes(4).toString('hex')}`);
  try {
    await rename(path, aside);
  } catch (error) {
    // Another process was faster; binding shows whether it listens there by now.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw new Error(`the admin socket ${path} cannot be replaced (${codeOf(error)}): ${SETTING}`, {
      cause: error,
    });
  }
  try {
    await requireStale(aside, path);
  } catch (error) {
    // Not by rename, which would replace what a third process has bound.
    await link(aside, path);
    throw error;
  } finally {
    await unlink(aside);
  }
}

/** Throws an Error about `path` unless connections to `at` are refused. */
async function requireStale(at: string, path: string): Promise<void> {
  const code = await connectError(at);
  if (code === undefined)
    throw new Error(`another process listens at the admin socket ${path}: end it, or ${SETTING}`);
  if (code !== 'ECONNREFUSED')
    throw new Error(`the admin socket ${path} exists and cannot be connected to (${code}): ${SETTING}`);
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
