// Calls an integrator's endpoint over HTTP and returns the headers of its response, or the reason for having none.
// The adapter of undici, which is loaded when the first callback is called.
import { type Socket, connect as connectTcp } from 'node:net';
import { TLSSocket } from 'node:tls';
import type * as Undici from 'undici';
import { ConnectRace, KEEP_ALIVE_PROBE_MS } from '../base/connect-race.ts';
import { type Authority, parseAuthority } from '../policy/authority/authority.ts';
import type { CompiledCallback } from '../policy/policy.ts';
import type { TrustSet } from '../tls/trust.ts';
import { readBody } from './body.ts';
import { type CallbackReply, parseReply } from './reply.ts';

type VettedAddress = { readonly address: string; readonly family: 4 | 6 };

/** Which addresses of a host may be dialled, or for the operator why none. It must settle: a connection waits for it. */
export type VetHost = (host: string, port: number) => Promise<VettedHost | { readonly refused: string }>;

type VettedHost = {
  readonly addresses: readonly VettedAddress[];
  /** No connection to this address was possible. */
  onFailed?(address: string): void;
};

export type CallbackClient = {
  /** One call, never retried. Every failure is a value whose reason quotes no header and no body. */
  call(callback: CompiledCallback, authority: Authority): Promise<CallbackReply>;
  close(): Promise<void>;
};

/** The trusted CAs of endpoints; undefined: Node's roots. All sandboxes share one set, because each copy costs megabytes. */
export type CallbackTrust = Pick<TrustSet, 'context' | 'showsOwnKey'>;

type Settings = {
  readonly vet: VetHost;
  readonly trust: CallbackTrust | undefined;
  readonly timeoutMs: number;
};

/** `timeoutMs` covers a whole call: address check, connect, handshake, head and body. */
export function createCallbackClient(settings: Settings): CallbackClient {
  const closing = new AbortController();
  let agent: Promise<Undici.Agent> | undefined;
  // The default export is the module itself in the checkout and in the bundle; the bundle has no named exports.
  const loadAgent = (): Promise<Undici.Agent> =>
    (agent ??= import('undici')
      .then(({ default: undici }) => createAgent(undici, settings))
      .catch((error: unknown) => {
        // The next call tries again: there may have been no free file descriptor.
        agent = undefined;
        throw error;
      }));

  return {
    async call(callback, authority) {
      if (closing.signal.aborted) return failed('the proxy is shutting down');
      const ended = Promise.withResolvers<CallbackReply>();
      const abort = new AbortController();
      const end = (reason: string): void => {
        ended.resolve(failed(reason));
        abort.abort();
      };
      const onClosing = (): void => end('the proxy is shutting down');
      const deadline = setTimeout(
        () => end(`no complete response within ${settings.timeoutMs} ms`),
        settings.timeoutMs,
      );
      closing.signal.addEventListener('abort', onClosing);
      try {
        // A race, because undici checks the signal only once it has a connection.
        const reply = loadAgent().then((loaded) => send(loaded, callback, authority, abort.signal));
        return await Promise.race([reply, ended.promise]);
      } catch (error) {
        return failed(reasonOf(error));
      } finally {
        clearTimeout(deadline);
        closing.signal.removeEventListener('abort', onClosing);
      }
    },
    async close() {
      closing.abort();
      const loaded = await agent?.catch(() => undefined);
      await loaded?.destroy();
    },
  };
}

async function send(
  agent: Undici.Agent,
  callback: CompiledCallback,
  authority: Authority,
  signal: AbortSignal,
): Promise<CallbackReply> {
  const url = new URL(callback.url);
  const { statusCode, headers, body } = await agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: 'POST',
    headers: requestHeaders(callback),
    body: JSON.stringify({ host: authority.host, port: authority.port }),
    signal,
  });
  // A body that is not read to its end emits an error when it is destroyed; without a listener that ends the process.
  body.on('error', () => undefined);
  const about = describeResponse(statusCode, headers['content-type']);
  // A redirect is a failure like any other status: following it would send the shared secret elsewhere.
  if (statusCode < 200 || statusCode > 299) {
    body.destroy();
    return failed(about);
  }
  const bytes = await readBody(body, headers['content-encoding']);
  const reply = typeof bytes === 'string' ? failed(bytes) : parseReply(bytes);
  return reply.ok ? reply : failed(`${about}: ${reply.reason}`);
}

/** Of a failure the operator sees the status and the content type, which shows a login page or an error page. */
function describeResponse(status: number, contentType: string | readonly string[] | undefined): string {
  if (contentType === undefined) return `status ${status}`;
  const [essence = ''] = String(contentType).toLowerCase().split(';');
  const known = CONTENT_TYPES.find((name) => name === essence.trim());
  return `status ${status}, ${known ?? 'another content type'}`;
}

/** No other is shown: a reason quotes nothing of a response. */
const CONTENT_TYPES: readonly string[] = [
  'application/json',
  'application/problem+json',
  'application/xml',
  'application/octet-stream',
  'text/html',
  'text/plain',
  'text/xml',
];

function requestHeaders(callback: CompiledCallback): string[] {
  const configured = callback.requestHeaders.flatMap(({ name, value }) => [
    name,
    typeof value === 'string' ? value : value.reveal(),
  ]);
  return ['Content-Type', 'application/json', ...configured];
}

// Not undici's global dispatcher nor EnvHttpProxyAgent: the environment must not redirect a secret.
function createAgent(undici: typeof Undici.default, settings: Settings): Undici.Agent {
  return new undici.Agent({
    connect: createConnector(undici, settings),
    connections: 64,
    allowH2: false,
    maxHeaderSize: 16_384,
    // The deadline of the call covers these.
    headersTimeout: 0,
    bodyTimeout: 0,
    // A POST is not retried, so a connection that the other end is about to close must not be reused.
    keepAliveTimeout: 2_000,
    keepAliveMaxTimeout: 2_000,
  });
}

function createConnector(undici: typeof Undici.default, settings: Settings): Undici.buildConnector.connector {
  const { trust } = settings;
  const secure = (): Undici.buildConnector.connector =>
    undici.buildConnector({
      allowH2: false,
      // A resumed session would skip the verification of the chain.
      maxCachedSessions: 0,
      timeout: settings.timeoutMs,
      keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
      rejectUnauthorized: true,
      ...(trust && { secureContext: trust.context }),
    });
  return (target, settle) => {
    const isTls = target.protocol === 'https:';
    const open = async (to: Destination): Promise<void> => {
      const httpSocket = await connectFirst(to, settings.timeoutMs);
      if (!isTls) return settle(null, httpSocket);
      const { host, isName } = to;
      secure()({ ...target, hostname: host, ...(isName && { servername: host }), httpSocket }, (...made) =>
        settle(...withoutOwnLeaf(made, settings)),
      );
    };
    destinationOf(target.host ?? '', isTls ? 443 : 80, settings.vet)
      .then(open)
      .catch((error: Error) => settle(error, null));
  };
}

/** A TCP connection to the first of the vetted addresses that responds. */
function connectFirst({ port, addresses, onFailed }: Destination, timeoutMs: number): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const race = new ConnectRace<VettedAddress, Socket>({
    addresses,
    open: ({ address }) => connectTcp({ host: address, port, noDelay: true }),
    onFailed: ({ address }) => onFailed(address),
    onEnd: (result) => {
      clearTimeout(timer);
      if (result instanceof Error) reject(result);
      // An error before its next owner listens must not end the process.
      else resolve(result.on('error', () => undefined));
    },
  });
  const timer = setTimeout(() => {
    race.expire();
    reject(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' }));
  }, timeoutMs);
  try {
    race.start();
  } catch (error) {
    clearTimeout(timer);
    throw error;
  }
  return promise;
}

type Made = Parameters<Undici.buildConnector.Callback>;

/** As in `dial`: an endpoint with a leaf of the proxy's own CA is a proxy loop or an attacker. */
function withoutOwnLeaf(made: Made, { trust }: Settings): Made {
  const [, socket] = made;
  if (!(socket instanceof TLSSocket) || !trust?.showsOwnKey(socket.getPeerX509Certificate())) return made;
  socket.destroy();
  return [notDialled('its certificate is of our own authority'), null];
}

type Destination = {
  readonly host: string;
  readonly port: number;
  readonly isName: boolean;
  readonly addresses: readonly VettedAddress[];
  onFailed(address: string): void;
};

// Addresses are checked for each connection when it is made, because a name may resolve to others by then.
async function destinationOf(text: string, defaultPort: number, vet: VetHost): Promise<Destination> {
  const authority = parseAuthority(text, defaultPort);
  if (typeof authority === 'string') throw notDialled(authority);
  const { host, port, kind } = authority;
  const vetted = await vet(host, port);
  if ('refused' in vetted) throw notDialled(vetted.refused);
  const isName = kind === 'name';
  // Of an address that is written in the URL, no other one may be dialled.
  const addresses = vetted.addresses.filter(({ address }) => isName || address === host);
  if (addresses.length === 0) throw notDialled('no address of it may be dialled');
  return { host, port, isName, addresses, onFailed: (address) => vetted.onFailed?.(address) };
}

function notDialled(refused: string): Error & { readonly refused: string } {
  return Object.assign(new Error('refused'), { refused });
}

// The code only: messages quote certificates, heads and whatever else the other end sent.
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'transport failed';
  if ('refused' in error) return `refused: ${String(error.refused)}`;
  return `transport failed: ${'code' in error && typeof error.code === 'string' ? error.code : error.name}`;
}

function failed(reason: string): CallbackReply {
  return { ok: false, reason };
}
