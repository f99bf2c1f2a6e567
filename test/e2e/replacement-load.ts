// Eight clients that send the next request after each response, or a moment later, while an operator replaces the document
// many times a second via the admin API of a real process. Returns figures; the caller evaluates them.
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Percentiles } from '../../bench/support/percentiles.ts';
import { SealedStateStore } from '../../src/sidecar/state/state-store.ts';
import { type CallbackEndpoint, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { headerValues } from '../support/message-reader.ts';
import {
  type Exchange,
  type OriginOptions,
  type RecordingOrigin,
  createOrigin,
  jsonResponse,
  response,
} from '../support/recording-origin.ts';
import { type SpawnedSallyport, spawnSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';
import { type Numbered, SECRET_NAME, documentOf, fieldsOf, injectedText } from './replacement-documents.ts';
import { ReplacementLog } from './replacement-log.ts';

export type ReplacementFigures = {
  readonly replacements: number;
  readonly replacementsPerSecond: number;
  readonly secretWrites: number;
  readonly requests: number;
  readonly abandoned: number;
  readonly violationCount: number;
  /** The first few violations. */
  readonly violations: readonly string[];
  /** Milliseconds from the response to a write, or from sending it, to the last arrival of what it replaced. */
  readonly lagSinceResponse: Percentiles;
  readonly lagSinceSent: Percentiles;
  /** The sealed state contains the last activated document. */
  readonly isLastKept: boolean;
};

/** The requests of each client: how many on one connection, in a tunnel with TLS or in plaintext. */
type Manner = {
  readonly host: 'api.test' | 'called.test' | 'clear.test';
  readonly method: 'GET' | 'POST';
  readonly requests: number;
};

const CLIENTS: readonly Manner[] = [
  { host: 'api.test', method: 'GET', requests: Number.POSITIVE_INFINITY },
  { host: 'api.test', method: 'GET', requests: Number.POSITIVE_INFINITY },
  { host: 'api.test', method: 'POST', requests: Number.POSITIVE_INFINITY },
  { host: 'api.test', method: 'GET', requests: 5 },
  { host: 'called.test', method: 'GET', requests: 20 },
  { host: 'clear.test', method: 'GET', requests: Number.POSITIVE_INFINITY },
  { host: 'clear.test', method: 'POST', requests: Number.POSITIVE_INFINITY },
  { host: 'clear.test', method: 'GET', requests: 5 },
];

/** One replacement in this many has a new value of the workspace secret. */
const SECRET_EVERY = 10;

type Stage = {
  readonly log: ReplacementLog;
  readonly proxy: SpawnedSallyport;
  readonly ca: string;
  readonly ports: Readonly<Record<Manner['host'], number>>;
  readonly endpoint: CallbackEndpoint;
  /** Sends a document to the admin API, on one connection. */
  put(path: string, document: unknown): Promise<void>;
  /** The document of each number. */
  readonly documents: Map<number, Numbered>;
};

export async function runReplacements(options: {
  readonly perSecond: number;
  readonly seconds: number;
  /** The pause of each client between a response and its next request; 0 uses the whole machine. */
  readonly pauseMs: number;
}): Promise<ReplacementFigures> {
  const log = new ReplacementLog();
  const documents: Stage['documents'] = new Map();
  const authority = createTestAuthority();
  await using origin = await createLoadOrigin(log, { authority, names: ['api.test', 'called.test'] });
  await using clear = await createLoadOrigin(log);
  await using endpoint = await createCallbackEndpoint((exchange) => respondToCallback(exchange, documents));
  await using proxy = await spawnSallyport({
    proxyConfig: {},
    upstreamCaPem: authority.certificatePem,
    env: { SALLYPORT_INJECT_CLEARTEXT: `clear.test:${clear.port}` },
  });
  const ready = await proxy.process.record(({ msg }) => msg === 'ready');
  const token = (await readFile(String(ready['admin_token']), 'utf8')).trim();
  await using operator = await WireClient.connect(Number(new URL(String(ready['admin'])).port));
  const stage: Stage = {
    log,
    proxy,
    documents,
    endpoint,
    ports: { 'api.test': origin.port, 'called.test': origin.port, 'clear.test': clear.port },
    ca: await readFile(proxy.caFile, 'utf8'),
    put: (path, document) => put(operator, { path, document, token }),
  };
  const writes = { secrets: 0, last: { count: 0, secret: '' } };
  await replace(stage, writes);
  const stop = new AbortController();
  const clients = CLIENTS.map((manner) => askAgain(stage, manner, stop.signal, options.pauseMs));
  const startedMs = performance.now();
  const elapsedMs = (): number => performance.now() - startedMs;
  let replacements = 0;
  while (elapsedMs() < options.seconds * 1000) {
    await replace(stage, writes);
    replacements += 1;
    // A late replacement does not delay the next ones.
    const dueMs = (replacements * 1000) / options.perSecond - elapsedMs();
    if (dueMs > 0) await delay(dueMs);
  }
  const seconds = elapsedMs() / 1000;
  stop.abort();
  await Promise.all(clients);
  proxy.process.kill('SIGTERM');
  await proxy.process.exited;
  const { sinceResponse, sinceSent } = log.lags();
  return {
    replacements,
    replacementsPerSecond: replacements / seconds,
    secretWrites: writes.secrets,
    requests: log.responses,
    abandoned: log.abandoned,
    violationCount: log.violationCount,
    violations: log.violations,
    lagSinceResponse: sinceResponse,
    lagSinceSent: sinceSent,
    isLastKept: (await keptIn(join(dirname(dirname(proxy.caFile)), 'secret'))).includes(
      `"opaque-${writes.last.count}"`,
    ),
  };
}

/** Activates the next document, with a new secret when it is due. */
async function replace(stage: Stage, writes: { secrets: number; last: Numbered }): Promise<void> {
  const { log, put, endpoint, documents } = stage;
  const count = writes.last.count + 1;
  const hasNewSecret = count % SECRET_EVERY === 1;
  const document = { count, secret: hasNewSecret ? `secret-${count}` : writes.last.secret };
  if (hasNewSecret) {
    await put('/v1/workspace_secrets', { [SECRET_NAME]: document.secret });
    writes.secrets += 1;
  }
  writes.last = document;
  documents.set(count, document);
  log.send(document);
  await put('/v1/proxy_config', documentOf(document, endpoint.url));
  log.response(count);
}

async function put(
  operator: WireClient,
  { path, document, token }: { readonly path: string; readonly document: unknown; readonly token: string },
): Promise<void> {
  const body = JSON.stringify(document);
  const fields = ['Host: localhost', `Authorization: Bearer ${token}`, 'Content-Type: application/json'];
  const lines = [`PUT ${path} HTTP/1.1`, ...fields, `Content-Length: ${Buffer.byteLength(body)}`, '', ''];
  await operator.send(`${lines.join('\r\n')}${body}`);
  const { head, text } = await operator.readResponse();
  if (head.status !== 200) throw new Error(`${path} got ${head.status}: ${text}`);
}

async function askAgain(stage: Stage, manner: Manner, signal: AbortSignal, pauseMs: number): Promise<void> {
  while (!signal.aborted) {
    try {
      await using client = await open(stage, manner.host);
      for (let i = 0; i < manner.requests && !signal.aborted; i += 1) {
        await ask(stage, client, manner);
        if (pauseMs > 0) await delay(pauseMs);
      }
    } catch (error) {
      stage.log.violate(`a client failed: ${String(error)}`);
    }
  }
}

function open({ proxy, ca, ports }: Stage, host: Manner['host']): Promise<WireClient> {
  return host === 'clear.test'
    ? WireClient.connect(proxy.port)
    : WireClient.connectThrough(proxy.port, `${host}:${ports[host]}`, { ca, name: host });
}

let lastNonce = 0;

async function ask({ log, ports }: Stage, client: WireClient, { host, method }: Manner): Promise<void> {
  lastNonce += 1;
  const path = `/${lastNonce}`;
  const authority = `${host}:${ports[host]}`;
  const inForce = log.responded;
  const target = host === 'clear.test' ? `http://${authority}${path}` : path;
  const lines = [`${method} ${target} HTTP/1.1`, `Host: ${authority}`, 'X-Plain: of the client'];
  const hasBody = method === 'POST';
  await client.send([...lines, ...(hasBody ? ['Content-Length: 8'] : []), '', ''].join('\r\n'));
  // In two pieces: the document may change between them.
  if (hasBody) for (const piece of ['half', 'half']) await client.send(piece);
  const { head, text } = await client.readResponse();
  if (head.status === 503 && headerValues(head, 'x-sallyport-error')[0] === 'rules_changed')
    log.abandoned += 1;
  else if (head.status !== 200) log.violate(`response ${head.status}: ${text}`);
  else if (!text.startsWith(`${path}\n`)) log.violate('the response to another request');
  else log.read(text.slice(path.length + 1), inForce);
}

/** Responds with the received fields, and notes the time. */
function createLoadOrigin(log: ReplacementLog, tls?: OriginOptions['tls']): Promise<RecordingOrigin> {
  return createOrigin({
    ...(tls && { tls }),
    async respond({ request, readBody, send }) {
      const fields = injectedText(request.headers);
      log.arrive(fields);
      await readBody();
      await send(response(200, [], `${request.target}\n${fields}`));
    },
  });
}

/** Responds with the headers of the document that the call belongs to. */
async function respondToCallback({ request, send }: Exchange, documents: Stage['documents']): Promise<void> {
  const document = documents.get(Number(headerValues(request, 'x-count')[0]));
  const headers = document ? Object.fromEntries(fieldsOf(document)) : {};
  await send(jsonResponse({ headers }));
}

/** The decrypted state of `default`. */
async function keptIn(directory: string): Promise<string> {
  const store = new SealedStateStore({ directory, key: { file: join(directory, 'state.key') } });
  try {
    return (await store.readAll()).get('default') ?? '';
  } finally {
    await store.close();
  }
}
