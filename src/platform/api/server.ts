// The API on its listener: every limit on time, bytes and numbers is set here. Whatever two readers could understand
// differently in a head is rejected before the API sees it. Every request leaves one line in the log.
import type { AddressInfo, Server as NetServer } from 'node:net';
import { type Exchange, HttpServer } from '../../base/http/http-server.ts';
import type { HttpResponse } from '../../base/http/http-response.ts';
import { removeStaleSocket } from '../../base/http/unix-socket.ts';
import { type RequestHead, requestIdOf } from '../../base/http/request-head.ts';
import { type ListenAddress, listenerUrl, type SocketPath } from '../../base/listen-address.ts';
import type { LineWriter, Log } from '../../base/log.ts';
import { rememberLast } from '../../base/remember-last.ts';
import type { Api, RequestFacts } from './api-request.ts';
import { type TrustedProxies, clientAddress } from './client-address.ts';
import { type ConnectionLimits, createConnectionLimits } from './connection-limits.ts';
import { platformError, type PlatformErrorCode } from './errors.ts';
import type { ServerLimits } from './limits.ts';
import { pageOrigin } from './session/page-origin.ts';

export type Server = {
  /** `http://127.0.0.1:8080`, or `unix:/path` */
  readonly url: string;
  /** Requests whose response is not written yet. */
  readonly running: number;
  /** Of them, those whose response is a stream or may become one. */
  readonly streams: number;
  /** Stops accepting and lets running requests end, at most for the drain time; each response ends its connection. */
  close(): Promise<void>;
};

/** A request whose response was written, or whose client has left. */
export type FinishedRequest = {
  readonly method: string;
  /** The route's path with its braces, never the path of the request; undefined where there is none. */
  readonly route: string | undefined;
  /** 499: the client left before its response was written. */
  readonly status: number;
  readonly seconds: number;
};

export type RequestLine = {
  readonly method: string;
  readonly path: string | undefined;
  readonly status: number;
  readonly ms: number;
  readonly key: string | undefined;
  readonly organization: string | undefined;
  readonly cause: string | undefined;
  readonly request: string;
};

export type ServerOptions = {
  readonly api: Api;
  readonly listen: ListenAddress | SocketPath;
  /** What the operator changes where it cannot listen. */
  readonly listenSetting?: string | undefined;
  readonly limits: ServerLimits;
  readonly trustedProxies: TrustedProxies;
  /** Of a unix socket: whoever reaches it is a proxy that is trusted. */
  readonly isBehindProxy?: boolean | undefined;
  /** Where browsers find the platform: `https://platform.example.com`. */
  readonly publicUrl?: string | undefined;
  readonly log: Log;
  /** In place of `log`, for the line of each request; absent where no line of level info is written. */
  readonly writeRequest?: LineWriter<RequestLine> | undefined;
  onFinished(finished: FinishedRequest): void;
};

/** Throws an Error that says where it cannot listen. */
export async function openServer(options: ServerOptions): Promise<Server> {
  const { limits, log, trustedProxies } = options;
  const connections = createConnectionLimits(limits, trustedProxies, 'path' in options.listen);
  const server = new HttpServer({
    limits: { ...limits, headMs: Math.min(10_000, limits.requestMs) },
    log,
    requestId: requestIdOf,
    // Read while it is there: Node stores it then, also when the client resets the connection right after its request.
    // Where it is gone already no request is served, for every audit event must have it.
    accept: (socket) => (connections.accept(socket) ? socket : void socket.destroy()),
    handle: (exchange) => handle(options, connections, exchange),
    reject(kind, requestId) {
      const response = platformError(kind);
      report(options, { requestId, status: response.status, ms: 0 }, {});
      return response;
    },
  });
  return {
    url: await listenAt(
      server.listener,
      options.listen,
      options.listenSetting ?? 'listen or SALLYPORT_PLATFORM_LISTEN',
    ),
    get running() {
      return server.running;
    },
    get streams() {
      return connections.streams;
    },
    // The next request of an idle connection may be on its way.
    close: () => server.close(limits.drainMs, 'serve'),
  };
}

async function handle(
  options: ServerOptions,
  connections: ConnectionLimits,
  exchange: Exchange,
): Promise<HttpResponse> {
  const { head, requestId, socket, startedMs, closed } = exchange;
  const facts: RequestFacts = {};
  void closed.then((status = 499) =>
    report(options, { head, requestId, status, ms: performance.now() - startedMs }, facts),
  );
  const code = checkHead(head);
  if (code !== undefined)
    return { ...platformError(code, undefined, code === 'method' ? ALLOW : undefined), isLast: true };
  const forwardedFor = head.field('x-forwarded-for');
  return options.api({
    ...exchange,
    client: clientAddress(socket, forwardedFor, options.trustedProxies, options.isBehindProxy),
    origin: pageOrigin(socket, head, options),
    connection: {
      authenticated: () => connections.authenticated(socket),
      openStream: () => connections.openStream(socket, closed),
    },
    note: (more) => void Object.assign(facts, more),
  });
}

type Finished = {
  /** Absent where there was no request. */
  readonly head?: RequestHead;
  readonly requestId: string;
  readonly status: number;
  readonly ms: number;
};

function report(
  { onFinished, log, writeRequest = (line, msg) => log.info(line, msg) }: ServerOptions,
  { head, requestId, status, ms }: Finished,
  { route, keyId, organizationId: organization, cause }: RequestFacts,
): void {
  const method = head !== undefined && METHODS.has(head.method) ? head.method : 'other';
  onFinished({ method, route, status, seconds: ms / 1000 });
  const rounded = Math.round(ms * 100) / 100;
  const who = { key: keyId, organization };
  writeRequest({ method, path: route, status, ms: rounded, ...who, cause, request: requestId }, 'request');
}

/** RFC 9110 §15.5.6 demands it of every 405; which of them a path has is known to the API alone. */
const ALLOW = { Allow: 'GET, HEAD, POST, PUT, PATCH, DELETE' };

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Why the API must not see this head; undefined for one that may pass. */
function checkHead(head: RequestHead): PlatformErrorCode | undefined {
  const { version, method, target } = head;
  if (head.hasUnknownExpectation) return 'expectation';
  if (version !== '1.1' && version !== '1.0') return 'version';
  if (method === 'CONNECT') return 'method';
  if (!head.isOriginForm) return 'proxy_request';
  if (!PLAIN_TARGET.test(target) || DOT_SEGMENT.test(target)) return 'bad_target';
  if (head.host === undefined && (version === '1.1' || head.values('host').length > 0)) return 'bad_host';
  // A port above 65535, or four numbers that are no address: handlers and applications get a URL with it.
  if (head.host !== undefined && !isUrlHost(head.host)) return 'bad_host';
  if (!head.isFramedPlainly) return 'framing';
  if (method === 'TRACE') return 'method';
  return (method === 'GET' || method === 'HEAD') && head.hasBody ? 'unexpected_body' : undefined;
}

const isUrlHost = rememberLast((host) => URL.canParse(`http://${host}/`));

// A client never sends its fragment, and a backslash is a slash to some readers.
const PLAIN_TARGET = /^\/[!"$-[\]-~]*$/;
const DOT_SEGMENT = /^[^?]*\/(?:\.|%2e){1,2}(?:[/?]|$)/i;

/** Returns the URL. Throws an Error that names the address, and `setting` as what to change. */
export async function listenAt(server: NetServer, at: ListenAddress | SocketPath, setting: string) {
  const name = 'path' in at ? at.path : `${at.host}:${at.port}`;
  if ('path' in at) await removeStaleSocket(at.path, { what: 'the socket', cure: `change ${setting}` });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onError = ({ code = 'an unknown error' }: NodeJS.ErrnoException): void =>
    reject(new Error(`nothing can listen at ${name} (${code}): change ${setting}`));
  server.once('error', onError);
  server.listen(at, resolve);
  await promise;
  server.off('error', onError);
  return 'path' in at ? `unix:${at.path}` : listenerUrl(server.address() as AddressInfo);
}
