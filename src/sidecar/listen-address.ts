// Where a listener is to stand: a host and a port, or a socket in the file system. Pure; opens nothing.
import { classifyAddress, parseAddress } from '../policy/address.ts';

export type ListenAddress = { readonly host: string; readonly port: number };
export type SocketPath = { readonly path: string };

/** `host:port`, `[v6]:port`, `:port` (every interface) or a bare port of loopback; port 0 is any free one. */
export function parseListenAddress(text: string): ListenAddress | string {
  const found = /^(?:(?<host>[^[\]:\s]*|\[[^\]]+\]):)?(?<port>[0-9]{1,5})$/.exec(text)?.groups;
  const port = Number(found?.['port'] ?? Number.NaN);
  if (!found || !(port <= 65_535)) return 'should be host:port, for example 127.0.0.1:3128 or [::1]:3128';
  const host = found['host'] ?? '127.0.0.1';
  return { host: host === '' ? '0.0.0.0' : host.replace(/^\[|\]$/g, ''), port };
}

/** As above, or `unix:/absolute/path`, or `off`. */
export function parseAdminListen(
  text: string,
): ListenAddress | SocketPath | 'off' | { readonly fault: string } {
  if (text === 'off') return 'off';
  // The kernel cuts a longer path off, or refuses it: sun_path has room for 107 bytes.
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length);
    const isUsable = path.startsWith('/') && !path.includes('\0') && Buffer.byteLength(path) <= 107;
    return isUsable ? { path } : { fault: 'should be unix: and an absolute path of at most 107 bytes' };
  }
  const parsed = parseListenAddress(text);
  if (typeof parsed !== 'string') return parsed;
  return { fault: 'should be host:port, unix:/path or off, for example 127.0.0.1:3129' };
}

/** True for an address that only this machine can reach. */
export function isLoopbackListen({ host }: Pick<ListenAddress, 'host'>): boolean {
  const address = parseAddress(host);
  return address ? classifyAddress(address) === 'loopback' : host === 'localhost';
}

/** `http://host:port` of an open listener; empty before it is open. */
export function listenerUrl(
  listener: { readonly address: string; readonly port: number } | undefined,
): string {
  if (!listener) return '';
  const { address, port } = listener;
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}
