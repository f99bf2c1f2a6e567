// Binds the admin API to a port, or to a unix socket that only its owner can open. Its errors say which setting to change.
// Independent of HTTP.
import type { AddressInfo, Server } from 'node:net';
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
  // Loaded where there is a socket.
  const { removeStaleSocket } = await import('../base/http/unix-socket.ts');
  await removeStaleSocket(path, { what: 'the admin socket', cure: SETTING });
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
