// One sandbox that runs: the data path of its own behind what the process shares. Its caches, pools, TLS sessions and
// callbacks are its own, so that nothing which one sandbox warmed can serve another.
// It knows nothing of documents, storage and tokens.
import type { Socket } from 'node:net';
import { BoundedCache } from '../../base/bounded-cache.ts';
import { createCallbackResolver } from '../../callback/resolver.ts';
import { emptyPolicy } from '../../policy/compile.ts';
import type { Policy } from '../../policy/policy.ts';
import { createAlpnHints } from '../../proxy/upstream/alpn.ts';
import type { ConnectionBudget } from '../../proxy/accept/connection-budget.ts';
import type { OpenConnection, ProxyContext } from '../../proxy/context.ts';
import { cutConnection } from '../../proxy/splice.ts';
import { createDialler } from '../../proxy/upstream/dial.ts';
import type { Places } from '../../proxy/upstream/connection-quota.ts';
import type { Limits } from '../../proxy/limits.ts';
import type { LookupSlots } from '../../proxy/upstream/lookup-slots.ts';
import { type Lookup, createResolver } from '../../proxy/upstream/resolver.ts';
import { createUpstream } from '../../proxy/upstream/connection-pool.ts';
import { createUpstreamSessions } from '../../proxy/upstream/h2-sessions.ts';
import { poolPrefix } from '../../proxy/gate/connection-source.ts';
import type { CertificateAuthority } from '../../tls/certificate-authority.ts';
import { createLeafCache } from '../../tls/leaf-cache.ts';
import type { TrustSet } from '../../tls/trust.ts';
import type { Config } from '../config.ts';
import { type OwnListeners, callbackGuard } from '../egress.ts';

/** What all sandboxes of a process have in common. */
export type SharedParts = Pick<ProxyContext, 'egress' | 'log'> & {
  readonly config: Config;
  readonly ca: CertificateAuthority;
  readonly trust: TrustSet;
  readonly listeners: OwnListeners;
  readonly lookupSlots: LookupSlots;
  readonly lookup?: Lookup | undefined;
  readonly budget: ConnectionBudget;
  readonly hostPlaces: Places;
  readonly idlePlaces: Places;
  /** Milliseconds on a monotonic clock, for the callback cache. */
  readonly now?: (() => number) | undefined;
  recorderOf(sandbox: string): ProxyContext['recorder'];
  isDraining(): boolean;
};

export type SandboxLimits = Pick<
  Limits,
  'maxConnections' | 'maxLookups' | 'maxIdleUpstream' | 'maxIdlePerHost'
>;

export type Sandbox = {
  readonly context: ProxyContext;
  /** Requests that come after this turn are judged by `policy`; what an older one warmed is gone. */
  putInForce(policy: Policy): void;
  /** What `overrides` does not name is as the config says. */
  limit(overrides: Partial<SandboxLimits>): void;
  /** Ends every connection of its clients now, records included. */
  disconnect(): Promise<void>;
  /** Ends what is idle and under way on the other side. The clients are gone by then. */
  close(): Promise<void>;
};

// What one sandbox may keep warm. There may be a thousand of them.
const MAX_LEAVES = 64;
const MAX_SESSIONS = 1_000;
// A host chooses how long its tickets are: up to 64 KiB each.
const MAX_SESSION_BYTES = 1024 * 1024;

export function createSandbox(
  id: string,
  shared: SharedParts,
  overrides: Partial<SandboxLimits> = {},
): Sandbox {
  const { config, ca, trust, egress, log, lookup, now } = shared;
  const limits = { ...config.limits, ...overrides };
  const { timeouts } = config;
  const resolver = createResolver({
    slots: shared.lookupSlots,
    timeoutMs: timeouts.dnsMs,
    get maxLookups() {
      return limits.maxLookups;
    },
    ...(lookup ? { lookup } : {}),
  });
  const tickets = new BoundedCache<Buffer>({
    max: MAX_SESSIONS,
    bytes: { max: MAX_SESSION_BYTES, of: (ticket) => ticket.length },
  });
  const dialler = createDialler({
    resolver,
    egress,
    trust,
    sessions: tickets,
    connectMs: timeouts.connectMs,
    places: shared.hostPlaces,
  });
  const upstream = createUpstream({
    dialler,
    responseIdleMs: timeouts.responseIdleMs,
    places: shared.idlePlaces,
    get maxIdle() {
      return limits.maxIdleUpstream;
    },
    get maxIdlePerHost() {
      return limits.maxIdlePerHost;
    },
  });
  const sessions = createUpstreamSessions({ dialler, limits, places: shared.idlePlaces });
  const callbacks = createCallbackResolver({
    sandbox: id,
    vet: callbackGuard(config, resolver, egress),
    trust,
    timeoutMs: config.callback.timeoutMs,
    ...(now ? { now } : {}),
  });
  let policy: Policy = emptyPolicy(0);
  let isClosing = false;
  const context: ProxyContext = {
    sandbox: id,
    policy: () => policy,
    callbacks,
    dialler,
    upstream,
    sessions,
    hints: createAlpnHints(now),
    leaves: createLeafCache(ca, { max: MAX_LEAVES }),
    egress,
    scrubsBodies: config.scrub === 'body',
    limits,
    timeouts,
    recorder: shared.recorderOf(id),
    log,
    connections: new Set<OpenConnection>(),
    clients: new Set<Socket>(),
    isDraining: () => isClosing || shared.isDraining(),
    isReady: () => !isClosing && !shared.isDraining() && (policy.revision > 0 || !config.requireConfig),
  };
  return {
    context,
    putInForce(next) {
      policy = next;
      upstream.keepOnly(poolPrefix(next.revision));
      sessions.keepOnly(poolPrefix(next.revision));
      tickets.clear();
      callbacks.forget();
    },
    limit(next) {
      Object.assign(limits, config.limits, next);
    },
    async disconnect() {
      const connections = [...context.connections];
      for (const connection of connections) cutConnection(connection);
      await Promise.all(connections.map(({ gone }) => gone));
    },
    async close() {
      isClosing = true;
      await this.disconnect();
      upstream.close();
      sessions.close();
      await callbacks.close();
    },
  };
}
