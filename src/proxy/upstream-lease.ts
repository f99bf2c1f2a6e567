// Which connection one request may use: a pooled one if its kind of request may share, else what a fresh one must
// satisfy. Whatever tells two requests' rights apart is part of the pool's key.
import type { Policy } from '../policy/policy.ts';
import { bindsConnection } from './connection-auth.ts';
import type { DialTarget } from './dial.ts';
import type { Refusal } from './refusal.ts';
import type { RequestPlan } from './request-plan.ts';
import type { Upstream, UpstreamConnection } from './upstream.ts';

/** Every key of a revision begins so. */
export function poolPrefix(revision: number): string {
  return `${revision} `;
}

/** A connection that lies idle and that this request may reuse. */
export function takePooled(
  upstream: Upstream,
  policy: Policy,
  plan: RequestPlan,
  clientId: number,
): UpstreamConnection | undefined {
  const { isUpgrade, isIdempotent, head } = plan;
  if (isUpgrade || head.minor === 0 || bindsConnection(head)) return undefined;
  return upstream.take({ key: poolKey(policy, plan), clientId, isIdempotent });
}

export function openFresh(
  upstream: Upstream,
  policy: Policy,
  plan: RequestPlan,
  signal: AbortSignal,
): Promise<UpstreamConnection | Refusal> {
  return upstream.open(poolKey(policy, plan), dialTarget(policy, plan), signal);
}

/** One pool serves one sandbox and one trust set; revision, scheme and authority are the rest. */
function poolKey(policy: Policy, { scheme, target }: RequestPlan): string {
  return `${poolPrefix(policy.revision)}${scheme}://${target.authority.text}`;
}

function dialTarget(policy: Policy, { scheme, target }: RequestPlan): DialTarget {
  const { authority } = target;
  const cover = policy.coverOf(authority);
  const isNamed = cover.kind === 'intercept';
  return {
    authority,
    scheme,
    named: !isNamed ? 'no' : cover.exactName ? 'exact' : 'wildcard',
    isPortListed: cover.kind === 'tunnel' && cover.portListed,
    denies: (address) => policy.deniesAddress(address, authority.port),
  };
}
