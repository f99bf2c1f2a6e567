// Calls an integrator's endpoint over HTTP and returns the headers it gives, or why it gave none.
// The only file that knows undici, loaded when the first callback is called. It knows no cache and no sandbox.
import { TLSSocket } from 'node:tls';
import type * as Undici from 'undici';
import { type Authority, parseAuthority } from '../policy/authority/authority.ts';
import type { CompiledCallback } from '../policy/policy.ts';
import type { TrustSet } from '../tls/trust.ts';
import { readBody } from './body.ts';
import { type CallbackReply, parseReply } from './reply.ts';

type VettedAddress = { readonly address: string; readonly family: 4 | 6 };

/** Which addresses of a host may be dialled; a refusal says why, for the operator. It must settle: a connection waits. */
export type VetHost = (
  host: string,
  port: number,
) => Promise<{ readonly addresses: readonly VettedAddress[] } | { readonly refused: string }>;

export type CallbackClient = {
  /** One call, never repeated. Every failure is a value whose reason holds nothing that a header or a body said. */
  call(callback: CompiledCallback, authority: Authority): Promise<CallbackReply>;
  close(): Promise<void>;
};

/** Who may vouch for an endpoint; undefined: Node's roots. One set serves every sandbox, for each copy costs megabytes. */
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

  return {
    async call(callback, authority) {
      if (closing.signal.aborted) return failed('the proxy is shutting down');
      // The default export is the module itself in the checkout and in the bundle; the bundle has no named ones.
      agent ??= import('undici').then(({ default: undici }) => createAgent(undici, settings));
      const ended = Promise.withResolvers<CallbackReply>();
      const abort = new AbortController();
      const end = (reason: string): void => {
        ended.resolve(failed(reason));
        abort.abort();
      };
      const onClosing = (): void => end('the proxy is shutting down');
      const deadline = setTimeout(
        () => end(`no complete answer within ${settings.timeoutMs} ms`),
        settings.timeoutMs,
      );
      closing.signal.addEventListener('abort', onClosing);
      try {
        // The race, because undici looks at the signal only once it has a connection.
        return await Promise.race([ask(await agent, callback, authority, abort.signal), ended.promise]);
      } catch (error) {
        return failed(reasonOf(error));
      } finally {
        clearTimeout(deadline);
        closing.signal.removeEventListener('abort', onClosing);
      }
    },
    async close() {
      closing.abort();
      await (await agent)?.destroy();
    },
  };
}

async function ask(
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
  // A body that nobody reads to its end errors when it is dropped; without a listener that ends the process.
  body.on('error', () => undefined);
  // A redirect is a status like any other failure: following it would resend the shared secret elsewhere.
  if (statusCode < 200 || statusCode > 299) {
    body.destroy();
    return failed(`status ${statusCode}`);
  }
  const bytes = await readBody(body, headers['content-encoding']);
  return typeof bytes === 'string' ? failed(bytes) : parseReply(bytes);
}

function requestHeaders(callback: CompiledCallback): string[] {
  const configured = callback.requestHeaders.flatMap(({ name, value }) => [
    name,
    typeof value === 'string' ? value : value.reveal(),
  ]);
  return ['Content-Type', 'application/json', ...configured];
}

// Not undici's global dispatcher nor EnvHttpProxyAgent: nothing in the environment may send a secret elsewhere.
function createAgent(undici: typeof Undici.default, settings: Settings): Undici.Agent {
  return new undici.Agent({
    connect: createConnector(undici, settings),
    connections: 64,
    allowH2: false,
    maxHeaderSize: 16_384,
    // The call's own deadline covers these.
    headersTimeout: 0,
    bodyTimeout: 0,
    // A POST is not repeated, so a connection that the other end is about to close must not be picked.
    keepAliveTimeout: 2_000,
    keepAliveMaxTimeout: 2_000,
  });
}

function createConnector(undici: typeof Undici.default, settings: Settings): Undici.buildConnector.connector {
  const { trust } = settings;
  return (target, settle) => {
    const isTls = target.protocol === 'https:';
    const open = ({ host, isName, addresses }: Destination): void =>
      undici.buildConnector({
        allowH2: false,
        autoSelectFamily: true,
        // A turn later, as in `dial`: a connection that is refused at once must find its listeners.
        lookup: (_host, _options, done) => process.nextTick(done, null, [...addresses]),
        // A resumed session skips the chain.
        maxCachedSessions: 0,
        timeout: settings.timeoutMs,
        ...(isTls && { rejectUnauthorized: true, ...(trust && { secureContext: trust.context }) }),
      })({ ...target, hostname: host, ...(isName && { servername: host }) }, (...made) =>
        settle(...proven(made, settings)),
      );
    destinationOf(target.host ?? '', isTls ? 443 : 80, settings.vet)
      .then(open)
      .catch((error: Error) => settle(error, null));
  };
}

type Made = Parameters<Undici.buildConnector.Callback>;

/** As `dial` does: an endpoint that shows a leaf of ours is a loop or a thief. */
function proven(made: Made, { trust }: Settings): Made {
  const [, socket] = made;
  if (!(socket instanceof TLSSocket) || !trust?.showsOwnKey(socket.getPeerX509Certificate())) return made;
  socket.destroy();
  return [refusal('its certificate is of our own authority'), null];
}

type Destination = {
  readonly host: string;
  readonly isName: boolean;
  readonly addresses: readonly VettedAddress[];
};

// Addresses are checked for each connection, when it is made: an answer of yesterday vouches for nothing.
async function destinationOf(text: string, defaultPort: number, vet: VetHost): Promise<Destination> {
  const authority = parseAuthority(text, defaultPort);
  if (typeof authority === 'string') throw refusal(authority);
  const { host, port, kind } = authority;
  const vetted = await vet(host, port);
  if ('refused' in vetted) throw refusal(vetted.refused);
  const { addresses } = vetted;
  // Node dials an address as written, without asking lookup.
  const isName = kind === 'name';
  const isVetted = isName ? addresses.length > 0 : addresses.some(({ address }) => address === host);
  if (!isVetted) throw refusal('no address of it may be dialled');
  return { host, isName, addresses };
}

type Refusal = Error & { readonly refused: string };

function refusal(refused: string): Refusal {
  return Object.assign(new Error('refused'), { refused });
}

// The code alone: messages quote certificates, heads and whatever else the other end sent.
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'transport failed';
  if ('refused' in error) return `refused: ${String(error.refused)}`;
  return `transport failed: ${'code' in error && typeof error.code === 'string' ? error.code : error.name}`;
}

function failed(reason: string): CallbackReply {
  return { ok: false, reason };
}
