// The composition root: config becomes one running proxy with its sandboxes. The only place that knows every part and
// where each comes from.
import { readFile } from 'node:fs/promises';
import type { AdminServer } from '../admin/admin-server.ts';
import { readInput } from '../base/input-error.ts';
import { type Log, type LogSink, createFdSink, createLineWriter, createLog } from '../base/log.ts';
import { Secret } from '../base/secret.ts';
import type { SecretLookup } from '../policy/compile.ts';
import { createConnectionBudget } from '../proxy/accept/connection-budget.ts';
import { createPlaces } from '../proxy/upstream/connection-quota.ts';
import { createLookupSlots } from '../proxy/upstream/lookup-slots.ts';
import { createRecorder } from '../proxy/record.ts';
import type { Lookup } from '../proxy/upstream/resolver.ts';
import type { CertificateAuthority } from '../tls/certificate-authority.ts';
import { createTrustSet } from '../tls/trust.ts';
import type { Config } from './config.ts';
import { maxHosts, maxIdleHosts, maxOpenClients } from './descriptor-limit.ts';
import { OwnListeners, egressRules } from './egress.ts';
import { openListeners, restoreSandboxes } from './sandboxes/sandbox-restore.ts';
import { type Applied, DEFAULT, createSandboxes } from './sandboxes/sandboxes.ts';
import type { RecordOutlets } from './records/record-outlets.ts';
import { readProxyToken } from './secret-files.ts';
import type { StateStore } from './state/state-store.ts';

export type Sidecar = {
  /** Where the proxy listens; before `listen` the port is 0. */
  readonly proxyAddress: string;
  readonly proxyPort: number;
  /** Of the sandbox `default`. */
  readonly revision: number;
  /** Of the CA certificate, as `openssl x509 -fingerprint -sha256` prints it. */
  readonly fingerprint: string;
  readonly log: Log;
  /** Brings back what the store keeps. Throws an Error that says which sandbox cannot be, and why. */
  restore(secrets: SecretLookup): Promise<void>;
  /** The operator's document for `default`, judged whole and in force at once; a bad one changes nothing. */
  applyProxyConfig(document: unknown, secrets: SecretLookup): Applied;
  /** The document in force once more, with the operator's secrets of now. */
  reapply(secrets: SecretLookup): Applied;
  /** Opens the port. A configuration that must be in force for the first request is applied before. */
  listen(): Promise<void>;
  /** Opens the admin API; answers its URL. */
  openAdmin(token: Secret): Promise<string>;
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
  /** Keeps what the admin API changes; without one it is lost at the end. */
  readonly store?: StateStore;
};

/** Wires everything and listens nowhere yet. Throws an Error that says what to mend when it cannot. */
export async function createSidecar(config: Config, parts: SidecarParts): Promise<Sidecar> {
  const { ca, sink = createFdSink(1), lookup, now, store } = parts;
  const log = createLog(config.logLevel, sink);
  const adminRecords = createLog(config.areChangesRecorded ? 'info' : 'silent', sink);
  const { auth } = config;
  const token =
    auth && auth !== 'none' ? new Secret(await readInput(() => readProxyToken(auth.tokenFile))) : undefined;
  const extraPem = config.upstreamCaFile ? await readFile(config.upstreamCaFile, 'utf8') : undefined;
  const listeners = new OwnListeners();
  const outlets = await openOutlets(config, sink, log);
  let isDraining = false;
  const shared = {
    config,
    ca,
    trust: createTrustSet({ without: ca, ...(extraPem === undefined ? {} : { extraPem }) }),
    egress: egressRules(config, listeners),
    listeners,
    recorderOf: outlets.recorderOf,
    log,
    lookupSlots: createLookupSlots(lookupThreads()),
    lookup,
    hostPlaces: createPlaces(maxHosts()),
    idlePlaces: createPlaces(maxIdleHosts()),
    budget: createConnectionBudget({
      maxOpen: maxOpenClients(),
      maxWaiting: config.limits.maxWaiting,
    }),
    now,
    isDraining: () => isDraining,
  };
  const sandboxes = createSandboxes({ shared, token, store });
  const main = (): { address: string; port: number } =>
    sandboxes.default.listener ?? { address: config.listen.host, port: 0 };
  let admin: AdminServer | undefined;

  /** What the operator's files change is a write like those of the admin API. */
  function recorded(applied: Applied): Applied {
    const action = { action: 'proxy_config.apply', sandbox: DEFAULT, by: 'operator' };
    if (applied.ok) adminRecords.info({ ...action, outcome: 'done', revision: applied.revision }, 'admin');
    else adminRecords.info({ ...action, outcome: 'refused', reason: 'invalid' }, 'admin');
    return applied;
  }

  return {
    get proxyAddress() {
      return main().address;
    },
    get proxyPort() {
      return main().port;
    },
    get revision() {
      return sandboxes.main.own.policy().revision;
    },
    fingerprint: ca.fingerprintSha256,
    log,
    restore: (secrets) => restoreSandboxes(sandboxes, secrets),
    applyProxyConfig: (document, secrets) => recorded(sandboxes.applyOperators(document, secrets)),
    reapply: (secrets) => recorded(sandboxes.reapply(secrets)),
    listen: () => openListeners(sandboxes, config.listen),
    async openAdmin(adminToken) {
      const { listen, hosts } = config.admin;
      if (listen === 'off') throw new Error('admin.listen is off');
      // Loaded when it is asked for: a command behind a proxy of its own has no use for it.
      const [{ createAdminServer }, { createAdminTarget }] = await Promise.all([
        import('../admin/admin-server.ts'),
        import('./sandboxes/admin-target.ts'),
      ]);
      // Before it is open: a name that was judged a moment earlier may be connected to a moment later.
      if ('port' in listen && listen.port !== 0)
        listeners.admin = { address: listen.host, port: listen.port };
      admin = await createAdminServer({
        target: createAdminTarget(sandboxes, ca.certificatePem),
        listen,
        token: adminToken,
        hosts,
        record: (entry) => adminRecords.info(entry, 'admin'),
        isRecordBlocked: () => sink.isBlocked,
        log,
      });
      if (!('path' in listen)) listeners.admin = admin;
      return admin.url;
    },
    async close() {
      isDraining = true;
      const startedMs = performance.now();
      await Promise.all([sandboxes.close(), admin?.close(config.timeouts.drainMs)]);
      await store?.close();
      // Of a write that was being kept, too.
      await admin?.settled();
      // The last records are those of the connections that have just ended.
      const leftMs = config.timeouts.drainMs - (performance.now() - startedMs);
      await outlets.close(Math.max(leftMs, MIN_FORWARD_MS));
      await sink.close();
    },
  };
}

async function openOutlets(config: Config, sink: LogSink, log: Log): Promise<RecordOutlets> {
  const { isRecorded, whenBlocked, recordForward } = config;
  if (recordForward !== undefined) {
    const { createRecordOutlets } = await import('./records/record-outlets.ts');
    return readInput(() => createRecordOutlets(config, recordForward, { sink, log }));
  }
  // Apart from the log: a quieter log must not lose the account of what was done.
  const write = isRecorded ? createLineWriter(sink) : undefined;
  const recorder = createRecorder({ write, sink, whenBlocked });
  return { recorderOf: () => recorder, close: async () => undefined };
}

/** For the records of exchanges that took the whole drain. */
const MIN_FORWARD_MS = 1_000;

// libuv gives getaddrinfo half of its threads at most; two of those stay free for what else is slow.
const DEFAULT_THREADS = 4;

function lookupThreads(): number {
  const threads = Number(process.env['UV_THREADPOOL_SIZE'] ?? DEFAULT_THREADS);
  return Math.max(1, Math.floor(threads / 2) - 2);
}
