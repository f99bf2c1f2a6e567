// Which connection a request may use: a pooled one, if the request may share a connection, or a new one with these
// requirements. Everything that distinguishes the rights of two requests is part of the pool's key.
import type { Authority } from '../../policy/authority/authority.ts';
import type { Policy } from '../../policy/policy.ts';
import type { Protocol } from '../upstream/alpn.ts';
import type { ConnectionSource } from './acquisition.ts';
import type { Scheme, ScopedClient } from '../context.ts';
import { bindsConnection } from './connection-auth.ts';
import type { DialTarget } from '../upstream/dial.ts';
import { type Refusal, isRefusal } from '../refusal.ts';
import type { RequestPlan } from './request-plan.ts';
import type { UpstreamConnection } from '../upstream/connection-pool.ts';

/** What a connection is for. A pool serves one sandbox and one trust set; the key adds this and the revision. */
export type Purpose = {
  readonly scheme: Scheme;
  readonly authority: Authority;
  /** Offered to the upstream, in this order; unused over http://. */
  readonly alpn: readonly Protocol[];
};

/** HTTP/1.1 connections for the requests of a client. */
export class PooledConnectionSource implements ConnectionSource<UpstreamConnection> {
  readonly #client: ScopedClient;
  /** The last key: all requests of a tunnel have one authority, and the same string has its hash already. */
  #key = '';
  #keyOf: Authority | undefined;
  #keyScheme: Scheme | undefined;
  #keyRevision = -1;

  constructor(client: ScopedClient) {
    this.#client = client;
  }

  take(policy: Policy, plan: RequestPlan): UpstreamConnection | undefined {
    const { isUpgrade, isIdempotent, head, framing } = plan;
    const isShared = !isUpgrade && head.minor === 1 && !bindsConnection(head);
    if (!isShared) return undefined;
    const { id: clientId, scope } = this.#client;
    const isRetryable = isIdempotent && framing.kind === 'none';
    const key = this.#keyFor(policy, plan);
    return scope.context.upstream.take({ key, clientId, isIdempotent, isRetryable });
  }

  async open(policy: Policy, plan: RequestPlan, signal: AbortSignal): Promise<UpstreamConnection | Refusal> {
    const { scope } = this.#client;
    const refused = scope.dialFailure?.take(policy);
    if (refused) return refused;
    const { upstream, hints } = scope.context;
    const purpose = purposeOf(plan, HTTP1);
    const opened = await upstream.open(this.#keyFor(policy, plan), dialTarget(policy, purpose), signal);
    // The next client's connection negotiates anew.
    if (isRefusal(opened) && opened.refused === 'alpn_changed') hints.forget(purpose.authority);
    return opened;
  }

  #keyFor(policy: Policy, { scheme, target }: RequestPlan): string {
    const { authority } = target;
    const { revision } = policy;
    if (authority === this.#keyOf && scheme === this.#keyScheme && revision === this.#keyRevision)
      return this.#key;
    this.#key = poolKey(policy, { scheme, authority });
    this.#keyOf = authority;
    this.#keyScheme = scheme;
    this.#keyRevision = revision;
    return this.#key;
  }
}

const HTTP1: readonly Protocol[] = Object.freeze(['http/1.1']);

export function purposeOf({ scheme, target }: RequestPlan, alpn: readonly Protocol[]): Purpose {
  return { scheme, authority: target.authority, alpn };
}

/** The beginning of every key of a revision. */
export function poolPrefix(revision: number): string {
  return `${revision} `;
}

export function poolKey(policy: Policy, { scheme, authority }: Omit<Purpose, 'alpn'>): string {
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
