// Where listeners of the sidecar may be opened, which of them other machines can reach, and what the operator must set
// for those. Pure; opens nothing.
import {
  type ListenAddress,
  formatAddress,
  parseListenAddress,
  parseSocketListen,
  type SocketPath,
} from '../base/listen-address.ts';
import type { Issue } from '../base/schema.ts';
import { type Cidr, classifyAddress, parseAddress } from '../base/address.ts';

/** A host and a port, or `unix:/absolute/path`, or `off`. */
export function parseAdminListen(
  text: string,
): ListenAddress | SocketPath | 'off' | { readonly error: string } {
  if (text === 'off') return 'off';
  if (text.startsWith('unix:')) {
    const socket = parseSocketListen(text);
    return typeof socket === 'string' ? { error: socket } : socket;
  }
  const parsed = parseListenAddress(text);
  if (typeof parsed !== 'string') return parsed;
  return { error: 'must be host:port, unix:/path or off, for example 127.0.0.1:3129' };
}

/** True for an address that only this machine can reach. */
export function isLoopbackListen({ host }: Pick<ListenAddress, 'host'>): boolean {
  const address = parseAddress(host);
  return address ? classifyAddress(address) === 'loopback' : host === 'localhost';
}

/** What restricts the clients of the proxy: a token, or ranges of addresses, or `none` for no restriction. */
export type Guards = {
  readonly auth: 'none' | { readonly tokenFile: string } | undefined;
  readonly allowClients: readonly Cidr[] | undefined;
};

/** Whether other machines reach a proxy listener at this address, and only a token of its own could restrict them. */
export function isExposed(at: ListenAddress, { auth, allowClients }: Guards): boolean {
  return !isLoopbackListen(at) && allowClients === undefined && auth !== 'none';
}

/** An open proxy must be a decision, never a default, and so must a token that is sent in plaintext. */
export function exposureIssues(
  config: Guards & {
    readonly listen: ListenAddress;
    readonly admin: Service;
    readonly metrics: Service;
  },
): Issue[] {
  const issues: Issue[] = [];
  if (config.auth === undefined && isExposed(config.listen, config))
    issues.push(exposed(['listen'], config.listen, OPEN_PROXY));
  const services = [
    ['admin', config.admin, OPEN_ADMIN],
    ['metrics', config.metrics, OPEN_METRICS],
  ] as const;
  for (const [name, { listen, isExposed: isAllowed }, msg] of services)
    if (typeof listen === 'object' && 'port' in listen && !isLoopbackListen(listen) && !isAllowed)
      issues.push(exposed([name, 'listen'], listen, msg));
  return issues;
}

type Service = { readonly listen: ListenAddress | SocketPath | 'off'; readonly isExposed: boolean };

/** A sandbox may share loopback with a port, but not the directory of a socket. */
export function namespaceIssues(config: {
  readonly hasNamespaces: boolean;
  readonly admin: { readonly listen: ListenAddress | SocketPath | 'off' };
}): Issue[] {
  const { listen } = config.admin;
  const isSocket = typeof listen === 'object' && 'path' in listen;
  if (!config.hasNamespaces || isSocket) return [];
  return [{ loc: ['sandboxes', 'namespaces'], msg: NEEDS_SOCKET, type: 'value_error' }];
}

const NEEDS_SOCKET =
  'Listeners in namespaces of sandboxes need the admin API on a unix socket: set admin.listen to unix:/path (SALLYPORT_ADMIN_LISTEN)';

function exposed(loc: Issue['loc'], listen: ListenAddress, msg: string): Issue {
  return { loc, msg: `${formatAddress(listen)} is reachable from other machines${msg}`, type: 'value_error' };
}

const OPEN_PROXY =
  ': set auth.token_file (SALLYPORT_AUTH_TOKEN_FILE) or allow_clients (SALLYPORT_ALLOW_CLIENTS), or set auth to ' +
  '"none" (SALLYPORT_AUTH=none)';
const OPEN_ADMIN =
  ', and the token would be sent in plaintext: use loopback or unix:/path, or set admin.exposed ' +
  '(SALLYPORT_ADMIN_EXPOSED=true)';
const OPEN_METRICS =
  ', and names of rules would be sent in plaintext: use loopback or unix:/path, or set metrics.exposed ' +
  '(SALLYPORT_METRICS_EXPOSED=true), with metrics.token_file for readers that have a token';
