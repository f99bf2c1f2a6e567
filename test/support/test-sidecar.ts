// A sidecar inside the test process: every name resolves to loopback, records are stored in memory.
import { join } from 'node:path';
import { type Issue, parseWith } from '../../src/base/schema.ts';
import { Secret } from '../../src/base/secret.ts';
import { recordBatch } from '../../src/platform/sandbox-records/contract.ts';
import { parseConfig } from '../../src/sidecar/config.ts';
import type { Applied } from '../../src/sidecar/sandboxes/sandbox-rules.ts';
import { type Sidecar, createSidecar } from '../../src/sidecar/sidecar.ts';
import { type StateStore, SealedStateStore } from '../../src/sidecar/state/state-store.ts';
import type { ResolvedAddress } from '../../src/proxy/upstream/resolver.ts';
import {
  type CertificateAuthority,
  createCertificateAuthority,
} from '../../src/tls/certificate-authority.ts';
import { textCanary } from '../e2e/canary-values.ts';
import { findLeaks } from '../e2e/canary-search.ts';
import { type AskAdmin, createAdminClient } from './admin-client.ts';
import { createScratch } from './scratch.ts';
import type { LogRecord } from './spawned-process.ts';
import type { TestAuthority } from './test-authority.ts';

export type TestSidecarOptions = {
  readonly proxyConfig?: unknown;
  readonly secrets?: Readonly<Record<string, string>>;
  /** The CA of the origins, trusted for upstreams. */
  readonly origins?: TestAuthority;
  /** The operator's config document; listens on 127.0.0.1:0 by default. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** The lookup results by name, or promises of them; other names are 127.0.0.1. An Error is a failed lookup. */
  readonly names?: Readonly<Record<string, readonly string[] | Error | Promise<readonly string[]>>>;
  /** The clock of the callback cache, in milliseconds. */
  readonly now?: () => number;
  /** Files that the process may open. */
  readonly openFiles?: number;
  /** Opens the admin API on 127.0.0.1:0. */
  readonly admin?: boolean;
  /** A directory for the sealed store, as at a start, or a store of the test; the state is restored at once. */
  readonly state?: string | StateStore;
};

export type TestSidecar = AsyncDisposable & {
  readonly port: number;
  /** The proxy's own CA certificate: what a client must trust inside intercepted tunnels. */
  readonly caPem: string;
  readonly sidecar: Sidecar;
  /** Every log line so far, parsed. */
  readonly lines: readonly LogRecord[];
  /** Every name that was looked up, in order. */
  readonly lookups: readonly string[];
  /** The nth exchange record, counted from 0, once it is there. */
  record(index: number): Promise<LogRecord>;
  records(): readonly LogRecord[];
  apply(document: unknown): Applied;
  /** Blocks the record sink, or unblocks it. */
  blockSink(isBlocked: boolean): void;
  /** The URL of the admin API; empty without it. */
  readonly adminUrl: string;
  readonly adminToken: string;
  /** Sends a request to the admin API, with the token. */
  readonly admin: AskAdmin;
};

/** A shorter secret may occur in a line by chance. */
const MIN_CANARY = 8;
const ADMIN_TOKEN = 'canary-admin-token-0cc175b9c0f1b6a831c399e269772661';

/** The proxy's own CA. One for all tests: creating a CA takes time. */
export const proxyAuthority: CertificateAuthority = createCertificateAuthority({
  commonName: 'Sallyport test CA',
});

export async function createTestSidecar(options: TestSidecarOptions = {}): Promise<TestSidecar> {
  const scratch = await createScratch();
  const lines: LogRecord[] = [];
  const lookups: string[] = [];
  const waiting = new Set<() => void>();
  const sink = {
    write(line: string) {
      lines.push(JSON.parse(line) as LogRecord);
      for (const wake of waiting) wake();
    },
    isBlocked: false,
    dropped: 0,
    close: async () => {},
  };
  const document = {
    listen: '127.0.0.1:0',
    ...(options.origins
      ? { upstream: { ca_file: await scratch.write('upstream-ca.pem', options.origins.certificatePem) } }
      : {}),
    ...options.config,
    // The log level is the lowest, so that every line is written and searched at the end.
    log: { level: 'trace', ...(options.config?.['log'] as object | undefined) },
    admin: { listen: '127.0.0.1:0', ...(options.config?.['admin'] as object | undefined) },
  };
  const parsed = parseConfig(document, {});
  if (!parsed.ok) throw new Error(`test config: ${describe(parsed.issues)}`);
  const store = typeof options.state === 'string' ? createStore(options.state) : options.state;
  const sidecar = await createSidecar(parsed.value, {
    ca: proxyAuthority,
    sink,
    lookup: async (name) => {
      lookups.push(name);
      const response = await (options.names?.[name] ?? ['127.0.0.1']);
      if (response instanceof Error) throw response;
      return response.map((address): ResolvedAddress => ({ address, family: address.includes(':') ? 6 : 4 }));
    },
    ...(options.now ? { now: options.now } : {}),
    ...(options.openFiles ? { openFiles: options.openFiles } : {}),
    ...(store ? { store } : {}),
  });
  const records = (): LogRecord[] => lines.filter((line) => line['msg'] === 'exchange');
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> =>
    (closed ??= sidecar
      .close()
      .finally(() => scratch[Symbol.asyncDispose]())
      .then(() => refuseLeaks(lines, Object.values(options.secrets ?? {})))
      .then(() => refuseUnknownRecords(records())));
  const secrets = new Map(
    Object.entries(options.secrets ?? {}).map(([name, value]) => [name, new Secret(value)]),
  );
  const lookupSecret = (name: string): Secret | undefined => secrets.get(name);
  const apply = (proxyConfig: unknown): Applied => sidecar.applyProxyConfig(proxyConfig, lookupSecret);
  let adminUrl = '';
  try {
    // In the same order as at a start.
    await sidecar.restore(lookupSecret);
    if (options.proxyConfig !== undefined) {
      const applied = apply(options.proxyConfig);
      if (!applied.ok) throw new Error(`test proxy_config: ${describe(applied.issues)}`);
    }
    await sidecar.listen();
    if (options.admin) adminUrl = await sidecar.openAdmin(new Secret(ADMIN_TOKEN));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    port: sidecar.proxyPort,
    caPem: proxyAuthority.certificatePem,
    sidecar,
    lines,
    lookups,
    apply,
    records,
    adminUrl,
    adminToken: ADMIN_TOKEN,
    admin: options.admin ? createAdminClient(adminUrl, ADMIN_TOKEN) : noAdmin,
    blockSink(isBlocked) {
      sink.isBlocked = isBlocked;
    },
    async record(index) {
      for (;;) {
        const found = records()[index];
        if (found) return found;
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.add(resolve);
        await promise;
        waiting.delete(resolve);
      }
    },
    /** May be called before the end of the test, to start the next sidecar with the same state. */
    [Symbol.asyncDispose]: close,
  };
}

function createStore(directory: string): StateStore {
  return new SealedStateStore({ directory, key: { file: join(directory, 'state.key') } });
}

/** The platform would drop a record that its schema refuses, so that every record of every test is checked against it. */
function refuseUnknownRecords(records: readonly LogRecord[]): void {
  for (const { level: _level, msg: _msg, ...record } of records) {
    const parsed = parseWith(recordBatch, { source: SOURCE, records: [{ number: 0, ...record }] });
    if (!parsed.ok) throw new Error(`the platform refuses a record:  ${describe(parsed.issues)}`);
  }
}

const SOURCE = '3b241101-e2bb-4255-8caf-4136c566a962';

async function noAdmin(): Promise<never> {
  throw new Error('this test sidecar was created without `admin`');
}

/** I5 for every test that runs a sidecar: no log line contains a secret. */
function refuseLeaks(lines: readonly LogRecord[], secrets: readonly string[]): void {
  const canaries = secrets
    .filter(({ length }) => length >= MIN_CANARY)
    .map((value) => textCanary('a secret', value));
  const [leak] = findLeaks(
    'a log line',
    Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n')),
    canaries,
  );
  if (leak !== undefined) throw new Error(leak);
}

function describe(issues: readonly Issue[]): string {
  return issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
}
