// Binds a service to a port, or to a unix socket that only its owner can open. Its errors say which setting to change.
// Independent of HTTP.
import type { AddressInfo, Server } from 'node:net';
import { type ListenAddress, formatAddress, listenerUrl } from '../base/listen-address.ts';

export type AdminListen = ListenAddress | { readonly path: string };
/** `url`: `http://127.0.0.1:3129` or `unix:/path`. */
export type AdminAddress = { readonly url: string; readonly address: string; readonly port: number };

/** What listens, and how to correct where. */
export type ListenWords = { readonly what: string; readonly setting: string };

const ADMIN: ListenWords = {
  what: 'the admin API',
  setting: 'change admin.listen or SALLYPORT_ADMIN_LISTEN',
};
// The kernel truncates a longer path (sun_path), and would bind elsewhere.
const MAX_PATH_BYTES = 103;

/** Throws an Error that names the address. */
export async function listenAt(
  server: Server,
  at: AdminListen,
  words: ListenWords = ADMIN,
): Promise<AdminAddress> {
  if ('path' in at) return listenAtPath(server, at.path, words);
  await bound(server, formatAddress(at), words, () => server.listen({ host: at.host, port: at.port }));
  const { address, port } = server.address() as AddressInfo;
  return { url: listenerUrl({ address, port }), address, port };
}

async function listenAtPath(server: Server, path: string, words: ListenWords): Promise<AdminAddress> {
  const socket = words === ADMIN ? 'the admin socket' : `the socket of ${words.what}`;
  if (Buffer.byteLength(path) > MAX_PATH_BYTES)
    throw new Error(`${socket} ${path} is over ${MAX_PATH_BYTES} bytes long: ${words.setting}`);
  // Loaded where there is a socket.
  const { removeStaleSocket } = await import('../base/http/unix-socket.ts');
  await removeStaleSocket(path, { what: socket, cure: words.setting });
  await bound(server, path, words, () => {
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

async function bound(server: Server, where: string, words: ListenWords, listen: () => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onError = (error: NodeJS.ErrnoException): void =>
    reject(new Error(describeError(where, words, error)));
  server.once('error', onError);
  server.once('listening', resolve);
  listen();
  await promise;
  server.off('error', onError);
}

function describeError(
  where: string,
  { what, setting }: ListenWords,
  { code = 'an unknown error' }: NodeJS.ErrnoException,
): string {
  switch (code) {
    case 'EADDRINUSE':
      return `${what} cannot listen at ${where}, which is in use: end what listens there, or ${setting}`;
    case 'EACCES':
    case 'EPERM':
      return `${what} may not listen at ${where}: ${setting}`;
    default:
      return `${what} cannot listen at ${where} (${code}): ${setting}`;
  }
}
