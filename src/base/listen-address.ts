// Parses and formats the addresses of listeners. Pure; opens nothing.
export type ListenAddress = { readonly host: string; readonly port: number };

/** `host:port`, `[v6]:port`, `:port` (every interface) or a bare port of loopback; port 0 is any free one. */
export function parseListenAddress(text: string): ListenAddress | string {
  const found = /^(?:(?<host>[^[\]:\s]*|\[[^\]]+\]):)?(?<port>[0-9]{1,5})$/.exec(text)?.groups;
  const port = Number(found?.['port'] ?? Number.NaN);
  if (!found || !(port <= 65_535)) return 'must be host:port, for example 127.0.0.1:3128 or [::1]:3128';
  const host = found['host'] ?? '127.0.0.1';
  return { host: host === '' ? '0.0.0.0' : host.replace(/^\[|\]$/g, ''), port };
}

export type SocketPath = { readonly path: string };

/** An address, or `unix:/absolute/path`; otherwise what is wrong. */
export function parseSocketListen(text: string): ListenAddress | SocketPath | string {
  if (!text.startsWith('unix:')) {
    const parsed = parseListenAddress(text);
    return typeof parsed === 'string'
      ? 'must be host:port or unix:/path, for example 127.0.0.1:8080'
      : parsed;
  }
  const path = text.slice('unix:'.length);
  // The kernel truncates or rejects a longer path: sun_path holds 107 bytes.
  const isUsable = path.startsWith('/') && !path.includes('\0') && Buffer.byteLength(path) <= 107;
  return isUsable ? { path } : 'must be unix: and an absolute path of at most 107 bytes';
}

/** `http://host:port` of an open listener; empty before it is open. */
export function listenerUrl(
  listener: { readonly address: string; readonly port: number } | undefined,
): string {
  return listener ? `http://${formatAddress({ host: listener.address, port: listener.port })}` : '';
}

/** Where a client on this machine reaches the listener: an unspecified address can be listened on, but not called. */
export function toReachable({ host, port }: ListenAddress): ListenAddress {
  if (host === '0.0.0.0') return { host: '127.0.0.1', port };
  return { host: host === '::' ? '::1' : host, port };
}

/** `host:port`, or `[v6]:port`. */
export function formatAddress({ host, port }: ListenAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
