// The composition root: turns a config into a running proxy with its sandboxes. The only file that knows all parts.
import { readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import type { AdminServer } from '../admin/admin-server.ts';
import type { PageTarget } from '../admin/page/page-target.ts';
import { InputError, readInput } from '../base/input-error.ts';
import { type Log, type LogSink, createFdSink, createLog, describeBug } from '../base/log.ts';
import { Secret } from '../base/secret.ts';
import type { SecretLookup } from '../policy/compile.ts';
import { createConnectionBudget } from '../proxy/accept/connection-budget.ts';
import { ProxyCounters } from '../proxy/counters.ts';
import { createConnectionQuota } from '../proxy/upstream/connection-quota.ts';
import { createLookupSlots } from '../proxy/upstream/lookup-slots.ts';
import type { Lookup } from '../proxy/upstream/resolver.ts';
import type { CertificateAuthority } from '../tls/certificate-authority.ts';
import { codeOf } from '../tls/pem-files.ts';
import { createPublicCertificates, createRootBundle } from '../tls/public-certificates.ts';
import { createTrustSet } from '../tls/trust.ts';
import { readProxyToken } from './access-tokens.ts';
import type { Config } from './config.ts';
import { OwnListeners, egressRules } from './egress.ts';
import { maxIdleUpstreams, maxLookupThreads, maxOpenClients, maxUpstreams } from './process-limits.ts';
import type { MetricsServer } from './metrics/metrics-server.ts';
import { type RecordOutlets, createRecordOutlets } from './records/record-outlets.ts';
import type { HandedOverListeners } from './sandboxes/handed-over-listeners.ts';
import { type Applied, DEFAULT } from './sandboxes/sandbox-rules.ts';
import { openListeners, restoreSandboxes } from './sandboxes/sandbox-restore.ts';
import { Sandboxes } from './sandboxes/sandboxes.ts';
import type { StateStore } from './state/state-store.ts';

/** What a sidecar needs from outside; tests bring their own. */
export type SidecarParts = {
  readonly ca: CertificateAuthority;
  readonly sink?: LogSink;
  readonly lookup?: Lookup;
  /** Milliseconds on a monotonic clock, for the callback cache. */
  readonly now?: () => number;
  /** Files that the process may open; by default what the system says. */
  readonly openFiles?: number;
  /** Stores what the admin API changes; without it, changes are lost at the end of the process. */
  readonly store?: StateStore;
};

/** Connects all parts; nothing listens yet. Throws an Error that says what to do if a part cannot be created. */
export async function createSidecar(config: Config, parts: SidecarParts): Promise<Sidecar> {
  const { ca, sink = createFdSink(1), lookup, now, openFiles } = parts;
  // The parent process creates the sandboxes anew: stored ones would serve old rules until then.
  const store = config.hasNamespaces ? undefined : parts.store;
  const log = createLog(config.logLevel, sink);
  const token = await readInput(() => readProxyToken(config));
  const listeners = new OwnListeners();
  const counters = new ProxyCounters();
  const outlets = await createRecordOutlets(config, { sink, log, counters });
  const drain = { isAnnounced: false, isBegun: false };
  const trust = createTrustSet({ without: ca, ...(await readExtraRoots(config)) });
  const roots = createRootBundle(trust);
  const shared = {
    config,
    ca,
    roots,
    certificates: createPublicCertificates(ca, roots),
    trust,
    egress: egressRules(config, listeners),
    listeners,
    recorderOf: outlets.recorderOf,
    counters,
    log,
    lookupSlots: createLookupSlots(maxLookupThreads()),
    lookup,
    upstreamQuota: createConnectionQuota(maxUpstreams(openFiles)),
    idleQuota: createConnectionQuota(maxIdleUpstreams(openFiles)),
    budget: createConnectionBudget({
      maxOpen: maxOpenClients(openFiles),
      maxWaiting: config.limits.maxWaiting,
      // Where others depend on this process who know nothing of each other.
      isShared: config.hasNamespaces,
    }),
    now,
    isDraining: () => drain.isBegun,
    isEnding: () => drain.isAnnounced,
  };
  const sandboxes = new Sandboxes(shared, token === undefined ? undefined : new Secret(token), {
    store,
    handedOver: config.hasNamespaces ? await createHandedOver() : undefined,
  });
  return new Sidecar(sandboxes, { sink, outlets, drain, store });
}

/** Loaded on demand: few sidecars have a parent that hands over listeners. */
async function createHandedOver(): Promise<HandedOverListeners> {
  const loaded = await import('./sandboxes/handed-over-listeners.ts');
  return new loaded.HandedOverListeners();
}

/** The CA certificates of the operator, which are trusted besides the system's. */
async function readExtraRoots({ upstreamCaFile: file }: Config): Promise<{ readonly extraPem?: string }> {
  if (file === undefined) return {};
  const setting = `upstream.ca_file (SALLYPORT_UPSTREAM_CA): ${file}`;
  const extraPem = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new InputError(`${setting} cannot be read: ${codeOf(cause)}`, { cause });
  });
  if (!extraPem.includes('-----BEGIN CERTIFICATE-----'))
    throw new InputError(`${setting} contains no PEM certificate`);
  return { extraPem };
}

type Plumbing = {
  readonly sink: LogSink;
  readonly outlets: RecordOutlets;
  readonly drain: { isAnnounced: boolean; isBegun: boolean };
  readonly store: StateStore | undefined;
};

export class Sidecar {
  readonly log: Log;
  /** Of the CA certificate, as `openssl x509 -fingerprint -sha256` prints it. */
  readonly fingerprint: string;
  readonly #sandboxes: Sandboxes;
  readonly #parts: Plumbing;
  readonly #adminRecords: Log;
  readonly #reloads = { done: 0, failed: 0, isCurrent: true };
  #admin: AdminServer | undefined;
  #metrics: MetricsServer | undefined;
  /** Since its first request. */
  #page: (PageTarget & Disposable) | undefined;

  constructor(sandboxes: Sandboxes, parts: Plumbing) {
    const { config, ca, log } = sandboxes.shared;
    this.log = log;
    this.fingerprint = ca.fingerprintSha256;
    this.#sandboxes = sandboxes;
    this.#parts = parts;
    this.#adminRecords = createLog(config.areChangesRecorded ? 'info' : 'silent', parts.sink);
  }

  /** Where the proxy listens; before `listen` the port is 0. */
  get proxyAddress(): string {
    return this.#sandboxes.default.listener?.address ?? this.#sandboxes.shared.config.listen.host;
  }

  get proxyPort(): number {
    return this.#sandboxes.default.listener?.port ?? 0;
  }

  /** Of the sandbox `default`. */
  get revision(): number {
    return this.#sandboxes.main.own.policy().revision;
  }

  /** The CA certificate and the roots of the system. They are read at the first use. */
  get bundlePem(): Buffer {
    return Buffer.concat(this.#sandboxes.shared.certificates.bundle);
  }

  /** Exchanges, tunnels and refusals that have ended, recorded or not. */
  get endedCount(): number {
    const { emitted, dropped } = this.#parts.outlets.counts;
    return emitted + dropped;
  }

  /** Restores what the store holds. Throws an Error that says which sandbox cannot be restored, and why. */
  restore(secrets: SecretLookup): Promise<void> {
    return restoreSandboxes(this.#sandboxes, secrets);
  }

  /** The operator's document for `default`: validated as a whole and active at once; an invalid one changes nothing. */
  applyProxyConfig(document: unknown, secrets: SecretLookup): Applied {
    const { rules, default: entry } = this.#sandboxes;
    return this.#recorded(rules.applyOperators(entry, document, secrets));
  }

  /** The active document again, with the operator's current secrets. */
  reapply(secrets: SecretLookup): Applied {
    const { rules, default: entry } = this.#sandboxes;
    return this.#recorded(rules.reapply(entry, secrets));
  }

  /** A server with a leaf of this CA is a proxy loop or an attacker. */
  refuseUpstreamsOf(ca: CertificateAuthority | undefined): void {
    if (ca !== undefined) this.#sandboxes.shared.trust.ownKeys.add(ca.spkiSha256);
  }

  /** Counts a reload of the operator's files. False: what they hold is not active. */
  noteReload(isDone: boolean): void {
    const counts = this.#reloads;
    counts[isDone ? 'done' : 'failed'] += 1;
    counts.isCurrent = isDone;
  }

  /** Opens the port. The configuration for the first request must be applied before. */
  listen(): Promise<void> {
    return openListeners(this.#sandboxes, this.#sandboxes.shared.config.listen);
  }

  /** What the parent process sent over the IPC channel; without sandboxes.namespaces nobody may call it. */
  handOver(message: unknown, handle: unknown): void {
    const { handedOver } = this.#sandboxes;
    if (handedOver === undefined) throw new Error('sandboxes.namespaces is off');
    handedOver.receive(message, handle);
  }

  /** Creates in a later turn what the first upstream connection needs, so that neither it nor the start waits for that. */
  prepareUpstreams(): void {
    const { trust, log } = this.#sandboxes.shared;
    setImmediate(() => {
      try {
        void trust.context;
      } catch (error) {
        // Each upstream connection fails with it too.
        const reason = error instanceof InputError ? { error: error.message } : describeBug(error);
        log.error(reason, 'the trusted roots cannot be loaded');
      }
    });
  }

  /** Opens the admin API and returns its URL. */
  async openAdmin(token: Secret): Promise<string> {
    const { config, listeners } = this.#sandboxes.shared;
    const { listen, hosts } = config.admin;
    if (listen === 'off') throw new Error('admin.listen is off');
    // Loaded on demand: `sallyport run` opens no admin API.
    const { createAdminServer } = await import('../admin/admin-server.ts');
    // Before it is open: an address that was vetted a moment earlier may be dialled a moment later.
    if ('port' in listen && listen.port !== 0) listeners.admin = { address: listen.host, port: listen.port };
    const admin = await createAdminServer({
      loadTarget: async () => {
        const { createAdminTarget } = await import('./sandboxes/admin-target.ts');
        const { live } = this.#parts.outlets;
        const about = { reloads: this.#reloads, live };
        return { ...createAdminTarget(this.#sandboxes, about), loadPage: () => this.#loadPage() };
      },
      listen,
      token,
      hosts,
      record: (entry) => this.#adminRecords.info(entry, 'admin'),
      isRecordBlocked: () => this.#parts.sink.isBlocked,
      log: this.log,
    });
    this.#admin = admin;
    if (!('path' in listen)) listeners.admin = admin;
    return admin.url;
  }

  /** Opens the listener of the metrics and returns its URL. `version` is that of the product. */
  async openMetrics(version: string): Promise<string> {
    const { createMetricsServer } = await import('./metrics/metrics-server.ts');
    const { sink, outlets } = this.#parts;
    const parts = { reloads: this.#reloads, sink, outlets, version };
    this.#metrics = await createMetricsServer(this.#sandboxes, parts);
    return this.#metrics.url;
  }

  /** It is not ready from now on. Resolves after `drain.delay_ms`, until which it serves: load balancers need that long to notice. */
  async announceEnd(): Promise<void> {
    this.#parts.drain.isAnnounced = true;
    await setTimeout(this.#sandboxes.shared.config.drainDelayMs, undefined, { ref: false });
  }

  /** Stops accepting, lets running exchanges end within the drain limit, and writes out the log. */
  async close(): Promise<void> {
    const { sink, outlets, drain, store } = this.#parts;
    const { drainMs } = this.#sandboxes.shared.config.timeouts;
    const admin = this.#admin;
    drain.isBegun = true;
    const startedMs = performance.now();
    await Promise.all([this.#sandboxes.close(), admin?.close(drainMs)]);
    await this.#metrics?.close();
    this.#page?.[Symbol.dispose]();
    await store?.close();
    // Also of a change that was being stored.
    await admin?.settled();
    // The last records are those of the connections that have just closed.
    const leftMs = drainMs - (performance.now() - startedMs);
    await outlets.close(Math.max(leftMs, MIN_FORWARD_MS));
    await sink.close();
  }

  async #loadPage(): Promise<PageTarget> {
    const { createPageTarget } = await import('./page/page-target.ts');
    const { sink, outlets } = this.#parts;
    this.#page ??= createPageTarget(this.#sandboxes, { reloads: this.#reloads, sink, outlets });
    return this.#page;
  }

  /** A change by the operator's files is recorded like a change by the admin API. */
  #recorded(applied: Applied): Applied {
    const action = { action: 'proxy_config.apply', sandbox: DEFAULT, by: 'operator' };
    const outcome = applied.ok
      ? { outcome: 'done', revision: applied.revision }
      : { outcome: 'refused', reason: 'invalid' };
    this.#adminRecords.info({ ...action, ...outcome }, 'admin');
    return applied;
  }
}

/** For the records of exchanges that took the whole drain time. */
const MIN_FORWARD_MS = 1_000;
