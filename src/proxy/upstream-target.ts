// Which connection a request may use: the key under which it may be shared, and what a fresh one must satisfy.
// Pure. Whatever tells two requests' rights apart is part of the key.
import type { Authority } from '../policy/authority.ts';
import type { Policy } from '../policy/policy.ts';
import type { DialTarget } from './dial.ts';
import type { Scheme } from './request-target.ts';

/** One pool serves one sandbox and one trust set; revision, scheme and authority are the rest. */
export function poolKey(policy: Policy, scheme: Scheme, authority: Authority): string {
  return `${poolPrefix(policy.revision)}${scheme}://${authority.text}`;
}

/** Every key of a revision begins so. */
export function poolPrefix(revision: number): string {
  return `${revision} `;
}

export function dialTarget(policy: Policy, scheme: Scheme, authority: Authority): DialTarget {
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
