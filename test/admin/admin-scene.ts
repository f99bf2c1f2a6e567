// An admin server on loopback with a target that the test scripts; it stores every record and log line.
import type { Issue } from '../../src/base/schema.ts';
import { createLog } from '../../src/base/log.ts';
import { Secret } from '../../src/base/secret.ts';
import type { AdminRecord } from '../../src/admin/admin-records.ts';
import {
  type AdminServer,
  type AdminServerOptions,
  createAdminServer,
} from '../../src/admin/admin-server.ts';
import type { PageTarget } from '../../src/admin/page/page-target.ts';
import type { AdminTarget, Change, Expected, ShownSandbox } from '../../src/admin/target.ts';
import { headerValues } from '../support/message-reader.ts';
import { WireClient, type WireResponse } from '../support/wire-client.ts';

export const TOKEN = 'canary-admin-token-5d41402abc4b2a76b9719d911017c592';
export const CA_PEM = '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n';

export type Call = { readonly name: string; readonly id?: string; readonly given: readonly unknown[] };

export type AdminScene = AsyncDisposable & {
  readonly server: AdminServer;
  readonly port: number;
  readonly calls: readonly Call[];
  readonly records: readonly AdminRecord[];
  readonly logLines: readonly string[];
  /** The nth record, counted from 0, as soon as it exists. */
  record(index: number): Promise<AdminRecord>;
  connect(): Promise<WireClient>;
  /** Sends one request on a connection of its own, with the token unless `fields` replaces it. */
  ask(method: string, path: string, options?: AskOptions): Promise<WireResponse>;
  blockRecords(isBlocked: boolean): void;
};

export type AskOptions = {
  /** Replaces Host and Authorization. */
  readonly fields?: readonly string[];
  /** Added to Host and Authorization. */
  readonly more?: readonly string[];
  /** A text unchanged, anything else as JSON. */
  readonly body?: unknown;
};

export const OWN: readonly string[] = ['Host: localhost', `Authorization: Bearer ${TOKEN}`];

export async function createAdminScene(
  options: {
    readonly target?: Partial<AdminTarget>;
    /** Called when the target is loaded. */
    readonly onLoad?: () => void;
    readonly listen?: AdminServerOptions['listen'];
    /** Replaces the function that stores the records. */
    readonly record?: AdminServerOptions['record'];
  } & Pick<Partial<AdminServerOptions>, 'hosts' | 'limits' | 'clock'> = {},
): Promise<AdminScene> {
  const calls: Call[] = [];
  const records: AdminRecord[] = [];
  const logLines: string[] = [];
  const wakers = new Set<() => void>();
  let isBlocked = false;
  const server = await createAdminServer({
    loadTarget() {
      options.onLoad?.();
      return { ...createFakeTarget(calls), ...options.target };
    },
    listen: options.listen ?? { host: '127.0.0.1', port: 0 },
    token: new Secret(TOKEN),
    hosts: options.hosts ?? [],
    record:
      options.record ??
      ((entry) => {
        records.push(entry);
        for (const wake of wakers) wake();
      }),
    isRecordBlocked: () => isBlocked,
    log: createLog('debug', { write: (line) => void logLines.push(line) }),
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
  const { port } = server;
  return {
    ...{ server, port, calls, records, logLines },
    async record(index) {
      for (;;) {
        const found = records[index];
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => wakers.add(resolve));
      }
    },
    connect: () => WireClient.connect(port),
    async ask(method, path, { fields = OWN, more = [], body } = {}) {
      await using client = await WireClient.connect(port);
      await client.send(request(method, path, { fields, more, body }));
      return await readResponse(client, method);
    },
    blockRecords(value) {
      isBlocked = value;
    },
    async [Symbol.asyncDispose]() {
      await server.close(0);
    },
  };
}

export function request(
  method: string,
  path: string,
  { fields = OWN, more = [], body }: AskOptions = {},
): Buffer {
  const content = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  const hasType = [...fields, ...more].some((field) => /^content-type:/i.test(field));
  const framing = [`Content-Length: ${Buffer.byteLength(content)}`];
  if (!hasType) framing.push('Content-Type: application/json');
  const lines = [`${method} ${path} HTTP/1.1`, ...fields, ...more, ...(body === undefined ? [] : framing)];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${content}`);
}

/** A response to HEAD announces a length and has no body. */
export async function readResponse(client: WireClient, method: string = 'GET'): Promise<WireResponse> {
  if (method !== 'HEAD') return client.readResponse();
  const head = await client.readHead();
  return { head, body: { framing: 'none', length: 0, sha256: '', content: Buffer.alloc(0) }, text: '' };
}

export function field(response: WireResponse, name: string): string | undefined {
  return headerValues(response.head, name)[0];
}

export const SANDBOX: ShownSandbox = {
  id: 'default',
  proxy: 'http://127.0.0.1:3128',
  has_token: false,
  revision: 7,
  limits: { connections: 100 },
  connections: 2,
  created_at: '2026-01-01T00:00:00.000Z',
};

export const WARNING: Issue = { loc: ['rules', 0], msg: 'A sentence', type: 'shadowed' };

export function problem<T>(kind: 'not_found' | 'stale' | 'busy'): Change<T> {
  return { ok: false, problem: { kind, message: 'A sentence of the target.' } };
}

/** A target whose writes wait for `open`, and which counts how many run at once. */
export function createGatedTarget(): {
  readonly target: Partial<AdminTarget>;
  readonly seen: { running: number; most: number; started: number };
  readonly begun: Promise<void>;
  open(): void;
} {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const seen = { running: 0, most: 0, started: 0 };
  return {
    seen,
    begun: begun.promise,
    open: gate.resolve,
    target: {
      async changeSandbox() {
        seen.started += 1;
        seen.running += 1;
        seen.most = Math.max(seen.most, seen.running);
        begun.resolve();
        await gate.promise;
        seen.running -= 1;
        return { ok: true, value: { sandbox: SANDBOX } };
      },
    },
  };
}

/** Of a sidecar without rules. */
export const EMPTY_PAGE: PageTarget = {
  sandboxes: () => ['default'],
  explain: () => ({ isRefused: false, rows: [] }),
  rules: () => ({ revision: 0, rules: [], callbacks: [] }),
  state: () => [],
};

/** Has the sandbox `default` at revision 7, accepts everything and stores what it was given. */
function createFakeTarget(calls: Call[]): AdminTarget {
  const isKnown = (id: string): boolean => id === 'default';
  return {
    documentSchemas: () => ({ proxyConfig: {}, sandboxCreation: { properties: {} }, sandboxChange: {} }),
    isReady: () => true,
    reloads: () => ({ done: 0, failed: 0, isCurrent: true }),
    loadPage: async () => EMPTY_PAGE,
    records: { outcomes: ['injected', 'refused', 'failed'], follow: () => () => undefined },
    isAuthorityEnding: () => false,
    caPem: CA_PEM,
    proxyConfig: (id) => (isKnown(id) ? { revision: 7, etag: '"e7"', document: { rules: [] } } : undefined),
    async applyProxyConfig(id, document, expected) {
      calls.push({ name: 'applyProxyConfig', id, given: [document, expected] });
      if (!isKnown(id)) return problem('not_found');
      if (!isExpected(expected)) return problem('stale');
      return { ok: true, value: { revision: 8, etag: '"e8"', warnings: [WARNING] } };
    },
    secretNames: (id) => (isKnown(id) ? ['A', 'B'] : undefined),
    async changeSecrets(id, changes) {
      calls.push({ name: 'changeSecrets', id, given: [changes] });
      if (!isKnown(id)) return problem('not_found');
      return { ok: true, value: { names: ['A', 'B', 'C'], warnings: [WARNING] } };
    },
    sandboxes: () => [SANDBOX],
    sandbox: (id) => (isKnown(id) ? SANDBOX : undefined),
    async createSandbox(document) {
      calls.push({ name: 'createSandbox', given: [document] });
      const value = { sandbox: { ...SANDBOX, id: 'box-1' }, token: 'shown-once', warnings: [WARNING] };
      return { ok: true, value };
    },
    async changeSandbox(id, document) {
      calls.push({ name: 'changeSandbox', id, given: [document] });
      return isKnown(id) ? { ok: true, value: { sandbox: SANDBOX } } : problem('not_found');
    },
    async removeSandbox(id) {
      calls.push({ name: 'removeSandbox', id, given: [] });
      return isKnown(id) ? { ok: true, value: undefined } : problem('not_found');
    },
  };
}

function isExpected({ etags = '*', etag = '"e7"' }: Expected): boolean {
  return (etags === '*' || etags.includes('"e7"')) && etag === '"e7"';
}
