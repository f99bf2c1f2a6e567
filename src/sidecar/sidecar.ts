// The composition root: config becomes one running proxy. The only place that knows every part of the data path
// and where each comes from.
import { readFile } from 'node:fs/promises';
import { BoundedCache } from '../base/bounded-cache.ts';
import { type Log, type LogSink, createFdSink, createLog } from '../base/log.ts';
import type { Issue } from '../base/schema.ts';
import { Secret } from '../base/secret.ts';
import { createCallbackResolver } from '../callback/resolver.ts';
import { type SecretLookup, compileProxyConfig, emptyPolicy } from '../policy/compile.ts';
import type { Policy } from '../policy/policy.ts';
import { parseProxyConfig } from '../policy/proxy-config.ts';
import type { OpenConnection, ProxyContext } from '../proxy/context.ts';
import { createDialler } from '../proxy/dial.ts';
import { type Listener, createListener } from '../proxy/listener.ts';
import { createRecorder } from '../proxy/record.ts';
import { type Lookup, createResolver } from '../proxy/resolver.ts';
import { createUpstream } from '../proxy/upstream.ts';
import { poolPrefix } from '../proxy/upstream-lease.ts';
import type { CertificateAuthority } from '../tls/certificate-authority.ts';
import { createLeafCache } from '../tls/leaf-cache.ts';
import { createTrustSet } from '../tls/trust.ts';
import type { Config } from './config.ts';
import { callbackGuard, egressRules } from './egress.ts';
import { readProxyToken } from './secret-files.ts';

export type Applied =
  | { readonly ok: true; readonly revision: number; readonly warnings: readonly Issue[] }
  | { readonly ok: false; readonly issues: readonly Issue[] };

export type Sidecar = {
  /** Where the proxy listens; before `listen` the port is 0. */
  readonly proxyAddress: string;
  readonly proxyPort: number;
  readonly revision: number;
  readonly log: Log;
  /** Validates and compiles the whole document, then puts it in force; a bad one changes nothing. */
  applyProxyConfig(document: unknown, secrets: SecretLookup): Applied;
  /** Opens the port. A configuration that must be in force for the first request is applied before. */
  listen(): Promise<void>;
  /** Stops accepting, lets running exchanges end within the drain limit, writes out the log. */
  close(): Promise<void>;
};

/** What a sidecar takes from outside; tests bring their own. */
export type SidecarParts = {
  readonly ca: CertificateAuthority;
  readonly sink?: LogSink;
  readonly lookup?: Lookup;
  /** Milliseconds on a monotonic clock, for the callback cache. */
  readonly now?: () => number;
};

const SANDBOX = 'default';
const MAX_SESSIONS = 1_000;
// A host chooses how long its tickets are: up to 64 KiB each.
const MAX_SESSION_BYTES = 4 * 1024 * 1024;

/** Wires everything and listens nowhere yet. Throws an Error that says what to mend when it cannot. */
export async function createSidecar(config: Config, parts: SidecarParts): Promise<Sidecar> {
  const { ca, sink = createFdSink(1) } = parts;
  const log = createLog(config.logLevel, sink);
  // Apart from the log: a quieter log must not lose the account of what was done.
  const records = createLog(config.isRecorded ? 'info' : 'silent', sink);
  const token =
    config.auth && config.auth !== 'none' ? new Secret(readProxyToken(config.auth.tokenFile)) : undefined;
  const extraPem = config.upstreamCaFile ? await readFile(config.upstreamCaFile, 'utf8') : undefined;
  const trust = createTrustSet({ without: ca, ...(extraPem === undefined ? {} : { extraPem }) });
  const listeners: Listener[] = [];
  const egress = egressRules(config, listeners);
  const { timeouts, limits } = config;
  const resolver = createResolver({
    timeoutMs: timeouts.dnsMs,
    maxLookups: limits.maxLookups,
    ...(parts.lookup ? { lookup: parts.lookup } : {}),
  });
  const sessions = new BoundedCache<Buffer>({
    max: MAX_SESSIONS,
    bytes: { max: MAX_SESSION_BYTES, of: (ticket) => ticket.length },
  });
  const dialler = createDialler({ resolver, egress, trust, sessions, connectMs: timeouts.connectMs });
  const upstream = createUpstream({
    dialler,
    responseIdleMs: timeouts.responseIdleMs,
    maxIdle: limits.maxIdleUpstream,
    maxIdlePerHost: limits.maxIdlePerHost,
  });
  const callbacks = createCallbackResolver({
    sandbox: SANDBOX,
    vet: callbackGuard(config, resolver, egress),
    caPem: trust.certificates,
    timeoutMs: config.callback.timeoutMs,
    ...(parts.now ? { now: parts.now } : {}),
  });

  let policy: Policy = emptyPolicy(0);
  let hasConfig = false;
  let isDraining = false;
  const context: ProxyContext = {
    sandbox: SANDBOX,
    policy: () => policy,
    callbacks,
    dialler,
    upstream,
    leaves: createLeafCache(ca),
    egress,
    clients: { token, allowClients: config.allowClients },
    limits,
    timeouts,
    recorder: createRecorder({ log: records, sink, whenBlocked: config.whenBlocked }),
    log,
    connections: new Set<OpenConnection>(),
    isDraining: () => isDraining,
    isReady: () => !isDraining && (hasConfig || !config.requireConfig),
  };
  return {
    get proxyAddress() {
      return listeners[0]?.address ?? config.listen.host;
    },
    get proxyPort() {
      return listeners[0]?.port ?? 0;
    },
    get revision() {
      return policy.revision;
    },
    log,
    applyProxyConfig(document, secrets) {
      const authored = parseProxyConfig(document, { allowWildcards: config.allowWildcards });
      if (!authored.ok) return authored;
      const compiled = compileProxyConfig(authored.value, secrets, policy.revision + 1);
      if (!compiled.ok) return compiled;
      policy = compiled.value;
      hasConfig = true;
      // What an older revision warmed must not serve a newer one.
      upstream.keepOnly(poolPrefix(policy.revision));
      sessions.clear();
      callbacks.forget();
      log.info(
        { revision: policy.revision, ...policy.summary, warnings: authored.warnings.length },
        'proxy_config applied',
      );
      return { ok: true, revision: policy.revision, warnings: authored.warnings };
    },
    async listen() {
      listeners.push(await createListener(config.listen, context));
    },
    async close() {
      isDraining = true;
      await Promise.all(listeners.map((listener) => listener.close(timeouts.drainMs)));
      upstream.close();
      await callbacks.close();
      await sink.close();
    },
  };
}
