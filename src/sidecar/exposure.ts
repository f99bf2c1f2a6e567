// Listeners that others than this machine can reach, and what an operator must have said for them. Pure.
import type { ListenAddress } from '../base/listen-address.ts';
import type { Issue } from '../base/schema.ts';
import type { Cidr } from '../policy/authority/address.ts';
import { type SocketPath, isLoopbackListen } from './listen-address.ts';

/** What keeps strangers out: a token, ranges of addresses, or the word that nothing should. */
export type Guards = {
  readonly auth: 'none' | { readonly tokenFile: string } | undefined;
  readonly allowClients: readonly Cidr[] | undefined;
};

/** Whether others reach a proxy listener there, and nothing but a token of its own could keep them out. */
export function isExposed(at: ListenAddress, { auth, allowClients }: Guards): boolean {
  return !isLoopbackListen(at) && allowClients === undefined && auth !== 'none';
}

/** An open proxy is a decision, never a default; so is a token that passes in clear. */
export function exposureIssues(
  entries: Guards & {
    readonly listen: ListenAddress;
    readonly admin: { readonly listen: ListenAddress | SocketPath | 'off'; readonly isExposed: boolean };
  },
): Issue[] {
  const issues: Issue[] = [];
  if (entries.auth === undefined && isExposed(entries.listen, entries))
    issues.push({ loc: ['listen'], msg: OPEN_PROXY, type: 'value_error' });
  const { listen, isExposed: isMeant } = entries.admin;
  if (typeof listen === 'object' && 'port' in listen && !isLoopbackListen(listen) && !isMeant)
    issues.push({ loc: ['admin', 'listen'], msg: OPEN_ADMIN, type: 'value_error' });
  return issues;
}

const OPEN_PROXY =
  'Others can reach this address: set auth.token_file (SALLYPORT_AUTH_TOKEN_FILE), or allow_clients ' +
  '(SALLYPORT_ALLOW_CLIENTS), or write auth: "none" (SALLYPORT_AUTH=none)';
const OPEN_ADMIN =
  'Others can reach this address, and the token would pass in clear: use loopback or unix:/path, or set ' +
  'admin.exposed (SALLYPORT_ADMIN_EXPOSED=true)';
