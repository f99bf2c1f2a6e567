// The admin API on its own listener: sockets in, arrivals out. The door to @hono/node-server. It must not know what a
// route does; every bound on time, bytes and connections is set here.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { describeBug, type Log } from '../base/log.ts';
import type { Secret } from '../base/secret.ts';
import { createAccessGuard } from './access-guard.ts';
import { sendAnswer, sendRawAnswer } from './answer-out.ts';
import { refused } from './answer.ts';
import { type App, createApp } from './app.ts';
import { ConnectionTable } from './connection-table.ts';
import { type AdminScope, answerArrival, type Arrival, noRoute, type RouteMatch } from './exchange.ts';
import { type AdminListen, listenAt } from './listening.ts';
import { RateLimit } from './rate-limit.ts';
import type { AdminRecord } from './record.ts';
import { type BodyFault, RequestBody } from './request-body.ts';
import { readHead } from './request-head.ts';
import { routes } from './routes.ts';
import type { AdminTarget } from './target.ts';
import { WriteGate } from './write-gate.ts';

export type AdminLimits = {
  readonly connections: number;
  readonly headBytes: number;
  readonly bodyBytes: number;
  /** For a whole request, and again for its answer to be read. */
  readonly requestMs: number;
  readonly keepAliveMs: number;
  readonly writesAtOnce: number;
  readonly writesPerSecond: number;
  readonly wrongTokensPerMinute: number;
};

export type AdminServer = {
  /** `http://127.0.0.1:3129` or `unix:/path`. */
  readonly url: string;
  readonly address: string;
  readonly port: number;
  /** Stops accepting; lets running requests end, at most for `drainMs`. */
  close(drainMs: number): Promise<void>;
};

export type AdminServerOptions = {
  readonly target: AdminTarget;
  readonly listen: AdminListen;
  readonly token: Secret;
  /** Names that Host may hold besides those of loopback. */
  readonly hosts: readonly string[];
  record(entry: AdminRecord): void;
  isRecordBlocked(): boolean;
  readonly log: Log;
  readonly limits?: Partial<AdminLimits>;
};

const DEFAULTS: AdminLimits = {
  connections: 64,
  headBytes: 16 * 1024,
  bodyBytes: 1024 * 1024,
  requestMs: 10_000,
  keepAliveMs: 5000,
  writesAtOnce: 8,
  writesPerSecond: 100,
  wrongTokensPerMinute: 5,
};

/** Throws an Error that says which setting to change when it cannot listen. */
export async function createAdminServer(options: AdminServerOptions): Promise<AdminServer> {
  const limits = { ...DEFAULTS, ...options.limits };
  const desk = new Desk(toScope(options, limits), limits);
  const server = createServer(
    {
      maxHeaderSize: limits.headBytes,
      headersTimeout: limits.requestMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: Math.min(1000, Math.ceil(limits.requestMs / 10)),
      // Answered by ourselves, with a sentence and the fields that every answer has.
      requireHostHeader: false,
    },
    (incoming, outgoing) => desk.receive(incoming, outgoing),
  );
  desk.attach(server);
  const at = await listenAt(server, options.listen);
  return { ...at, close: (drainMs) => desk.close(server, drainMs) };
}

function toScope(options: AdminServerOptions, limits: AdminLimits): AdminScope {
  const { target, token, hosts, log } = options;
  const now = (): number => performance.now();
  const wrongTokens = new RateLimit(limits.wrongTokensPerMinute, 60_000, now);
  return {
    target,
    guard: createAccessGuard({ token, hosts, wrongTokens }),
    writes: new WriteGate(limits.writesAtOnce, new RateLimit(limits.writesPerSecond, 1000, now)),
    log,
    record: (entry) => options.record(entry),
    isRecordBlocked: () => options.isRecordBlocked(),
  };
}

/** What one request needs until it is answered. */
type Case = {
  readonly arrival: Arrival;
  readonly body: RequestBody;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
};

/** Takes requests in, has them answered and knows which are under way. */
class Desk {
  readonly #scope: AdminScope;
  readonly #limits: AdminLimits;
  readonly #connections: ConnectionTable;
  readonly #running: Set<Promise<void>> = new Set();
  readonly #app: App<Case>;
  #isClosing = false;

  constructor(scope: AdminScope, limits: AdminLimits) {
    this.#scope = scope;
    this.#limits = limits;
    this.#connections = new ConnectionTable(limits.connections);
    this.#app = createApp<Case>(routes, async (one, match) => {
      await this.#answer(one, match);
      return RESPONSE_ALREADY_SENT;
    });
  }

  attach(server: Server): void {
    server.on('connection', (socket) => this.#connections.add(socket));
    server.on('checkContinue', (incoming, outgoing) => this.receive(incoming, outgoing));
    server.on('checkExpectation', (incoming, outgoing) => this.receive(incoming, outgoing));
    // Node hands over the bare socket here; it is refused like everything that a proxy is sent.
    server.on('connect', (incoming, socket) => {
      const outgoing = new ServerResponse(incoming);
      socket.on('error', () => socket.destroy());
      outgoing.assignSocket(socket as Socket);
      outgoing.on('finish', () => (socket as Socket).destroySoon());
      this.receive(incoming, outgoing);
    });
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#giveUp(error, socket as Socket));
  }

  receive(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const one = this.#open(incoming, outgoing);
    const { head } = one.arrival;
    const connection = this.#connections.get(incoming.socket);
    if (connection !== undefined) {
      connection.running += 1;
      connection.body = one.body;
      outgoing.once('close', () => (connection.running -= 1));
    }
    const work =
      head.path === undefined || head.host === undefined || !head.isOriginForm
        ? this.#answer(one, noRoute)
        : this.#route(one, head.path);
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  async close(server: Server, drainMs: number): Promise<void> {
    this.#isClosing = true;
    const { promise: expired, resolve } = Promise.withResolvers<void>();
    const limit = setTimeout(() => {
      this.#connections.destroyAll();
      resolve();
    }, drainMs);
    const closed = new Promise<void>((done) => server.close(() => done()));
    this.#connections.destroyIdle();
    await Promise.race([Promise.all([closed, ...this.#running]), expired]);
    await closed;
    clearTimeout(limit);
  }

  #open(incoming: IncomingMessage, outgoing: ServerResponse): Case {
    const head = readHead(incoming);
    const body = new RequestBody(incoming, this.#limits.bodyBytes);
    const { socket } = incoming;
    const arrival: Arrival = {
      request: randomUUID(),
      head,
      client: socket.remoteAddress,
      startedMs: performance.now(),
      onTrusted: () => {
        const connection = this.#connections.get(socket);
        if (connection !== undefined) connection.isTrusted = true;
      },
      readDocument: () => {
        if (head.values('expect').length > 0) outgoing.writeContinue();
        return body.read();
      },
    };
    return { arrival, body, incoming, outgoing };
  }

  /** The head is judged by then: the adaptor, which makes a URL of Host and target, gets none that could mislead it. */
  async #route(one: Case, path: string): Promise<void> {
    const { incoming, outgoing, arrival } = one;
    incoming.url = path;
    incoming.headers.host = 'localhost';
    const listener = getRequestListener((request) => this.#app(request, one), {
      overrideGlobalObjects: false,
      autoCleanupIncoming: false,
      errorHandler: (error) => {
        this.#scope.log.error({ ...describeBug(error), request: arrival.request }, 'admin request failed');
        outgoing.destroy();
      },
    });
    await listener(incoming, outgoing);
  }

  async #answer({ arrival, body, incoming, outgoing }: Case, match: RouteMatch): Promise<void> {
    const answer = await answerArrival(this.#scope, arrival, match);
    sendAnswer(incoming, outgoing, answer, {
      request: arrival.request,
      isLast: this.#isClosing || !arrival.head.isOriginForm,
      isBodyUnread: arrival.head.hasBody && !body.isWhole,
      sendMs: this.#limits.requestMs,
    });
  }

  /** A head that is none, a body that is framed wrongly, either of them too late, or a client that has left. */
  #giveUp({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#connections.get(socket);
    const fault = faultOf(code);
    const isReading = connection?.body?.interrupt(fault) === true;
    if (fault === 'gone') socket.destroy();
    else if (isReading) return;
    // An answer is under way, and another one beside it would be taken for it.
    else if (!socket.writable || (connection !== undefined && connection.running > 0)) socket.destroy();
    else
      sendRawAnswer(
        socket,
        code === 'HPE_HEADER_OVERFLOW' ? LONG : fault === 'late' ? LATE : BAD,
        randomUUID(),
      );
  }
}

function faultOf(code: string): BodyFault {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'late';
  // The parser's words for a client that ends before its request does; the system has others.
  return code.startsWith('HPE_') && code !== 'HPE_INVALID_EOF_STATE' ? 'malformed' : 'gone';
}

const LATE = refused({ status: 408, reason: 'late', detail: 'Send the whole request sooner' });
const LONG = refused({ status: 431, reason: 'head', detail: 'Send fewer or shorter header fields' });
const BAD = refused({ status: 400, reason: 'head', detail: 'This is not an HTTP/1.1 request: correct it' });
