// A proxy between fake sockets: client connections, exchanges, the pool and records, without kernel and TLS. What it costs
// is the cost of our own code.
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { createLog } from '../../src/base/log.ts';
import { compileProxyConfig } from '../../src/policy/compile.ts';
import { parseAuthority } from '../../src/policy/authority/authority.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import type { Policy } from '../../src/policy/policy.ts';
import type { ProxyContext } from '../../src/proxy/context.ts';
import { ClientConnection } from '../../src/proxy/h1/client-connection.ts';
import { startExchange } from '../../src/proxy/h1/exchange.ts';
import { defaultLimits, defaultTimeouts } from '../../src/proxy/limits.ts';
import { createConnectionQuota } from '../../src/proxy/upstream/connection-quota.ts';
import { ConnectionPool } from '../../src/proxy/upstream/connection-pool.ts';
import { createRecordOutlets } from '../../src/sidecar/records/record-outlets.ts';

export type FakeExchanges = {
  /** One exchange on every connection: all requests first, then all responses. */
  round(): void;
  readonly clients: number;
  /** What the last upstream got and the last client. */
  readonly last: { readonly request: string; readonly response: string };
  readonly records: { count: number; chars: number; last: string };
};

const AUTHORITY = 'api.localhost:8443';
const TOKEN = `Bearer ${'abcdefghijklmnop'.repeat(2)}`;
/** Different heads, in length too: a proxy must not profit from a head that it has seen. */
const HEADS = 64;

export async function createFakeExchanges(
  options: { readonly clients?: number; readonly isRecorded?: boolean } = {},
): Promise<FakeExchanges> {
  const { clients: count = 32, isRecorded = true } = options;
  const records = { count: 0, chars: 0, last: '' };
  const context = await createContext(isRecorded, (line) => {
    records.count += 1;
    records.chars += line.length;
    records.last = line;
  });
  const tunnel = authority();
  const clients = Array.from({ length: count }, () => new FakeSocket());
  const upstreams = Array.from({ length: count }, () => new FakeSocket());
  const scope = { context, scheme: 'https', tunnel, clientAddress: '127.0.0.1' } as const;
  for (const socket of clients)
    context.connections.add(new ClientConnection(socket.asSocket(), { ...scope }, startExchange));
  for (const socket of upstreams) context.upstream.adopt(`1 https://${AUTHORITY}`, socket.asSocket());
  const requests = Array.from({ length: HEADS }, (_, i) => requestHead(i));
  const responses = Array.from({ length: HEADS }, (_, i) => response(i));
  const last = { request: '', response: '' };
  let turn = 0;
  return {
    clients: count,
    records,
    get last() {
      last.request = upstreams.at(-1)?.written?.toString('latin1') ?? '';
      last.response = clients.at(-1)?.written?.toString('latin1') ?? '';
      return last;
    },
    round() {
      for (const client of clients) client.emit('data', requests[turn++ % HEADS]);
      for (const upstream of upstreams) upstream.emit('data', responses[turn++ % HEADS]);
    },
  };
}

/** As much of a socket as the data path uses. It counts what is written. */
class FakeSocket extends EventEmitter {
  destroyed = false;
  readonly readable = true;
  readonly writable = true;
  readonly writableLength = 0;
  readonly writableNeedDrain = false;
  readonly readableEnded = false;
  readonly errored = null;
  readonly bytesRead = 0;
  bytesWritten = 0;
  written: Buffer | undefined;

  asSocket(): Socket {
    return this as unknown as Socket;
  }

  write(bytes: Buffer): boolean {
    this.bytesWritten += bytes.length;
    this.written = bytes;
    return true;
  }

  isPaused(): boolean {
    return false;
  }

  destroy(): this {
    this.destroyed = true;
    return this;
  }

  cork(): void {}
  uncork(): void {}
  resume(): void {}
  pause(): void {}
  setTimeout(): void {}
  setNoDelay(): void {}
}

function authority(): Exclude<ReturnType<typeof parseAuthority>, string> {
  const parsed = parseAuthority(AUTHORITY, 443);
  if (typeof parsed === 'string') throw new Error(parsed);
  return parsed;
}

async function createContext(isRecorded: boolean, onLine: (line: string) => void): Promise<ProxyContext> {
  const policy = createPolicy();
  const log = createLog('error', { write: (line) => void process.stderr.write(line) });
  const sink = { isBlocked: false, dropped: 0, write: onLine, close: async () => {} };
  const outlets = await createRecordOutlets(
    { isRecorded, whenBlocked: 'refuse', recordForward: undefined },
    { sink, log },
  );
  const upstream = new ConnectionPool({
    dialler: { dial: () => Promise.reject(new Error('no dial is expected')) },
    responseIdleMs: defaultTimeouts.responseIdleMs,
    quota: createConnectionQuota(1_000),
    maxIdle: 1_000,
    maxIdlePerHost: 1_000,
  });
  return {
    sandbox: 'default',
    policy: () => policy,
    upstream,
    egress: {},
    reserved: { name: 'sallyport.internal' },
    callbacks: {},
    scrubsBodies: false,
    limits: defaultLimits,
    timeouts: defaultTimeouts,
    recorder: outlets.recorderOf('default'),
    log,
    connections: new Set(),
    clients: new Set(),
    isDraining: () => false,
    isReady: () => true,
  } as unknown as ProxyContext;
}

function createPolicy(): Policy {
  const rule = {
    name: 'bench',
    match_hosts: ['api.localhost'],
    match_paths: ['/v1/*'],
    headers: [{ name: 'Authorization', type: 'opaque', value: TOKEN }],
  };
  const parsed = parseProxyConfig({ rules: [rule] });
  const compiled = parsed.ok ? compileProxyConfig(parsed.value, () => undefined, 1) : parsed;
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.issues));
  return compiled.value;
}

function requestHead(i: number): Buffer {
  const lines = [
    `GET /v1/models/${i}?limit=${20 + i} HTTP/1.1`,
    `Host: ${AUTHORITY}`,
    `User-Agent: bench/1.${i}`,
    'Accept: application/json',
    'Accept-Encoding: identity',
    'Content-Type: application/json',
    `X-Trace: ${String(i * 7_919).padStart(16, '4bf92f35')}`,
    `Authorization: Bearer placeholder-of-the-agent-${i}`,
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
}

function response(i: number): Buffer {
  const body = JSON.stringify({ ok: true, padding: 'x'.repeat(200 + i) });
  const lines = [
    'HTTP/1.1 200 OK',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Date: Thu, 01 Jan 2026 00:00:00 GMT',
    'Server: bench',
    `X-Request-Id: ${i}-0123456789`,
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
