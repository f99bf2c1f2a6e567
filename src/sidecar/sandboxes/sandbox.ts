// One running sandbox: its own data path on top of what the process shares. Caches, pools, TLS sessions and callbacks
// belong to one sandbox, so that nothing cached for one sandbox can serve another.
import type { Socket } from 'node:net';
import { BoundedCache } from '../../base/bounded-cache.ts';
import { createCallbackResolver } from '../../callback/resolver.ts';
import { emptyPolicy } from '../../policy/compile.ts';
import type { Policy } from '../../policy/policy.ts';
import { createAlpnHints } from '../../proxy/upstream/alpn.ts';
import type { ConnectionBudget } from '../../proxy/accept/connection-budget.ts';
import type { OpenConnection, ProxyContext } from '../../proxy/context.ts';
import { Total } from '../../proxy/counters.ts';
import { notingRefusals } from '../../proxy/local/refusal-history.ts';
import { createReservedHost } from '../../proxy/local/reserved-host.ts';
import { closeAtOnce } from '../../proxy/splice.ts';
import { createDialler } from '../../proxy/upstream/dial.ts';
import type { ConnectionQuota } from '../../proxy/upstream/connection-quota.ts';
import type { Limits } from '../../proxy/limits.ts';
import type { LookupSlots } from '../../proxy/upstream/lookup-slots.ts';
import { type Lookup, createResolver } from '../../proxy/upstream/resolver.ts';
import { ConnectionPool } from '../../proxy/upstream/connection-pool.ts';
import { UpstreamSessions } from '../../proxy/upstream/h2-sessions.ts';
import { poolPrefix } from '../../proxy/gate/connection-source.ts';
import type { CertificateAuthority } from '../../tls/certificate-authority.ts';
import { createLeafCache } from '../../tls/leaf-cache.ts';
import {
  createPublicCertificates,
  type PublicCertificates,
  type RootBundle,
} from '../../tls/public-certificates.ts';
import type { TrustSet } from '../../tls/trust.ts';
import type { Config } from '../config.ts';
import { type OwnListeners, callbackGuard } from '../egress.ts';

/** What all sandboxes of a process share. */
export type SharedParts = Pick<ProxyContext, 'egress' | 'log' | 'counters'> & {
  readonly config: Config;
  /** Of the sandboxes that have no CA of their own. */
  readonly ca: CertificateAuthority;
  readonly certificates: PublicCertificates;
  readonly roots: RootBundle;
  readonly trust: TrustSet;
  readonly listeners: OwnListeners;
  readonly lookupSlots: LookupSlots;
  readonly lookup?: Lookup | undefined;
  readonly budget: ConnectionBudget;
  readonly upstreamQuota: ConnectionQuota;
  readonly idleQuota: ConnectionQuota;
  /** Milliseconds on a monotonic clock, for the callback cache. */
  readonly now?: (() => number) | undefined;
  recorderOf(sandbox: string): ProxyContext['recorder'];
  isDraining(): boolean;
  /** It ends soon: it is not ready any more, and serves on. */
  isEnding(): boolean;
};

/** The limits that a sandbox may have of its own. */
export const sandboxLimits = ['maxConnections', 'maxLookups', 'maxIdleUpstream', 'maxIdlePerHost'] as const;
export type SandboxLimits = Pick<Limits, (typeof sandboxLimits)[number]>;

// Cached for one sandbox; there may be a thousand sandboxes.
const MAX_LEAVES = 64;
const MAX_SESSIONS = 1_000;
// An upstream chooses how long its session tickets are: up to 64 KiB each.
const MAX_SESSION_BYTES = 1024 * 1024;

export type SandboxParts = {
  readonly limits?: Partial<SandboxLimits>;
  /** Of this sandbox alone. */
  readonly ca?: CertificateAuthority | undefined;
};

export class Sandbox {
  readonly context: ProxyContext;
  /** What its clients must trust. */
  readonly ca: CertificateAuthority;
  readonly #operatorLimits: Limits;
  readonly #limits: Limits;
  readonly #tickets = new BoundedCache<Buffer>({
    max: MAX_SESSIONS,
    bytes: { max: MAX_SESSION_BYTES, of: (ticket) => ticket.length },
  });
  #policy: Policy = emptyPolicy(0);
  #isClosing = false;

  constructor(id: string, shared: SharedParts, { limits, ca }: SandboxParts = {}) {
    const { config, egress, log, now, counters } = shared;
    const certificates = ca ? createPublicCertificates(ca, shared.roots) : shared.certificates;
    const reserved = createReservedHost({ name: config.reservedHost, certificates, now });
    this.#operatorLimits = config.limits;
    this.#limits = { ...config.limits, ...limits };
    this.ca = ca ?? shared.ca;
    const onIssued = (): void => counters.add(Total.leavesIssued);
    const isDraining = (): boolean => this.#isClosing || shared.isDraining();
    this.context = {
      sandbox: id,
      policy: () => this.#policy,
      ...upstreamParts(id, shared, this.#limits, this.#tickets),
      hints: createAlpnHints(shared.now),
      leaves: createLeafCache(this.ca, { max: MAX_LEAVES, onIssued }),
      egress,
      reserved,
      scrubsBodies: config.scrub === 'body',
      limits: this.#limits,
      timeouts: config.timeouts,
      recorder: notingRefusals(shared.recorderOf(id), reserved.refusals),
      counters,
      log,
      connections: new Set<OpenConnection>(),
      clients: new Set<Socket>(),
      isDraining,
      isReady: () =>
        !isDraining() && !shared.isEnding() && (this.#policy.revision > 0 || !config.requireConfig),
    };
  }

  /** Requests that begin after this call use `policy`; what was cached under the previous one is dropped. */
  activate(policy: Policy): void {
    const { upstream, sessions, callbacks } = this.context;
    this.#policy = policy;
    upstream.keepOnly(poolPrefix(policy.revision));
    sessions.keepOnly(poolPrefix(policy.revision));
    this.#tickets.clear();
    callbacks.forget();
  }

  /** Limits that `overrides` does not name are those of the config. */
  setLimits(overrides: Partial<SandboxLimits>): void {
    Object.assign(this.#limits, this.#operatorLimits, overrides);
  }

  /** Closes every client connection now and writes its records. */
  async disconnect(): Promise<void> {
    const connections = [...this.context.connections];
    for (const connection of connections) closeAtOnce(connection);
    await Promise.all(connections.map(({ closed }) => closed));
  }

  /** Closes every connection, those to upstreams too. */
  async close(): Promise<void> {
    const { upstream, sessions, callbacks } = this.context;
    this.#isClosing = true;
    await this.disconnect();
    upstream.close();
    sessions.close();
    await callbacks.close();
  }
}

/** What dials and pools; `limits` may change later. */
function upstreamParts(
  id: string,
  shared: SharedParts,
  limits: Limits,
  tickets: BoundedCache<Buffer>,
): Pick<ProxyContext, 'dialler' | 'upstream' | 'sessions' | 'callbacks'> {
  const { config, trust, egress, lookup, now, idleQuota, counters } = shared;
  const { connectMs, dnsMs, responseIdleMs } = config.timeouts;
  const resolver = createResolver({
    slots: shared.lookupSlots,
    timeoutMs: dnsMs,
    get maxLookups() {
      return limits.maxLookups;
    },
    ...(lookup && { lookup }),
  });
  const dialler = createDialler({
    resolver,
    egress,
    trust,
    sessions: tickets,
    connectMs,
    quota: shared.upstreamQuota,
    counters,
  });
  const upstream = new ConnectionPool({
    dialler,
    responseIdleMs,
    quota: idleQuota,
    get maxIdle() {
      return limits.maxIdleUpstream;
    },
    get maxIdlePerHost() {
      return limits.maxIdlePerHost;
    },
  });
  const callbacks = createCallbackResolver({
    sandbox: id,
    vet: callbackGuard(config, resolver, egress),
    trust,
    timeoutMs: config.callback.timeoutMs,
    counters: counters.callbacks,
    ...(now && { now }),
  });
  const sessions = new UpstreamSessions({ dialler, limits, quota: idleQuota });
  return { dialler, upstream, sessions, callbacks };
}
