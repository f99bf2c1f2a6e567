// Where a listener of the sidecar may stand besides at a host and a port, and who reaches it there. Pure; opens nothing.
import { type ListenAddress, parseListenAddress } from '../base/listen-address.ts';
import { classifyAddress, parseAddress } from '../policy/authority/address.ts';

export type SocketPath = { readonly path: string };

/** A host and a port, or `unix:/absolute/path`, or `off`. */
export function parseAdminListen(
  text: string,
): ListenAddress | SocketPath | 'off' | { readonly error: string } {
  if (text === 'off') return 'off';
  // The kernel cuts a longer path off, or refuses it: sun_path has room for 107 bytes.
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length);
    const isUsable = path.startsWith('/') && !path.includes('\0') && Buffer.byteLength(path) <= 107;
    return isUsable ? { path } : { error: 'should be unix: and an absolute path of at most 107 bytes' };
  }
  const parsed = parseListenAddress(text);
  if (typeof parsed !== 'string') return parsed;
  return { error: 'should be host:port, unix:/path or off, for example 127.0.0.1:3129' };
}

/** True for an address that only this machine can reach. */
export function isLoopbackListen({ host }: Pick<ListenAddress, 'host'>): boolean {
  const address = parseAddress(host);
  return address ? classifyAddress(address) === 'loopback' : host === 'localhost';
}
