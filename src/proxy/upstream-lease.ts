// Which connection one request may use: a pooled one if its kind of request may share, else what a fresh one must
// satisfy. Whatever tells two requests' rights apart is part of the pool's key.
import type { Authority } from '../policy/authority.ts';
import type { Policy } from '../policy/policy.ts';
import type { Protocol } from './alpn.ts';
import type { Lender } from './approach.ts';
import type { ClientConnection } from './client-connection.ts';
import { bindsConnection } from './connection-auth.ts';
import type { DialTarget } from './dial.ts';
import { isRefusal } from './refusal.ts';
import type { RequestPlan } from './request-plan.ts';
import type { Scheme } from './request-target.ts';
import type { UpstreamConnection } from './upstream.ts';

/** What connections are for: one pool serves one sandbox and one trust set; this and the revision are the rest. */
export type Purpose = {
  readonly scheme: Scheme;
  readonly authority: Authority;
  /** Offered to the host, in this order; over http:// nothing is. */
  readonly alpn: readonly Protocol[];
};

/** HTTP/1.1 connections for the requests of one client. */
export function connectionLender(
  { id: clientId, scope }: ClientConnection,
  plan: RequestPlan,
): Lender<UpstreamConnection> {
  const { upstream, hints } = scope.context;
  const { isUpgrade, isIdempotent, head } = plan;
  const isShared = !isUpgrade && head.minor === 1 && !bindsConnection(head);
  const purpose = purposeOf(plan, ['http/1.1']);
  return {
    take: (policy) =>
      isShared ? upstream.take({ key: poolKey(policy, purpose), clientId, isIdempotent }) : undefined,
    async open(policy, signal) {
      const refused = scope.refusedDial?.take(policy);
      if (refused) return refused;
      const opened = await upstream.open(poolKey(policy, purpose), dialTarget(policy, purpose), signal);
      // The next client's connection finds out what the host speaks now.
      if (isRefusal(opened) && opened.refused === 'alpn_changed') hints.forget(purpose.authority);
      return opened;
    },
  };
}

export function purposeOf({ scheme, target }: RequestPlan, alpn: readonly Protocol[]): Purpose {
  return { scheme, authority: target.authority, alpn };
}

/** Every key of a revision begins so. */
export function poolPrefix(revision: number): string {
  return `${revision} `;
}

export function poolKey(policy: Policy, { scheme, authority }: Purpose): string {
  return `${poolPrefix(policy.revision)}${scheme}://${authority.text}`;
}

export function dialTarget(policy: Policy, { authority, scheme, alpn }: Purpose): DialTarget {
  const cover = policy.coverOf(authority);
  const isNamed = cover.kind === 'intercept';
  return {
    authority,
    scheme,
    alpn,
    named: !isNamed ? 'no' : cover.exactName ? 'exact' : 'wildcard',
    isPortListed: cover.kind === 'tunnel' && cover.portListed,
    denies: (address) => policy.deniesAddress(address, authority.port),
  };
}
