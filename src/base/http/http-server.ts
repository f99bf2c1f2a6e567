// An HTTP/1.1 listener that has every request handled by one function: one request at a time on a connection, deadlines,
// responses to what is no request, and an orderly end. Independent of routes and of who may call.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { DomainError } from '../domain-error.ts';
import { describeBug, type Log } from '../log.ts';
import { commonFields, EndedEarly, type HttpResponse, sendResponse } from './http-response.ts';
import { RequestBody, type RequestErrorKind } from './request-body.ts';
import { LeftSignal } from './left-signal.ts';
import { readRequestHead, type RequestHead } from './request-head.ts';

export type HttpLimits = {
  readonly headBytes: number;
  /** For a head to arrive. */
  readonly headMs: number;
  /**
   * For the body of a request to arrive, unless its consumer streams it within limits of its own, and again for the client
   * to read each piece of the response.
   */
  readonly requestMs: number;
  readonly keepAliveMs: number;
};

/** One request until its response is written. */
export type Exchange = {
  readonly head: RequestHead;
  readonly body: RequestBody;
  readonly requestId: string;
  readonly socket: Duplex & Pick<Socket, 'remoteAddress' | 'remotePort'>;
  /** On the clock of `performance.now()`. */
  readonly startedMs: number;
  /**
   * Aborts when the client leaves before its response was written, with a RequestError `client_gone` as the reason. A function
   * that makes it, and not a getter: V8 would make a shape of its own for each exchange, which keeps that exchange.
   */
  left(): AbortSignal;
  /**
   * Aborts when the server begins to drain, with a DomainError `unavailable` as the reason: a response without an end must
   * end itself then.
   */
  readonly draining: AbortSignal;
  /** Resolves with the status, or with undefined when the client left before the response was written. */
  readonly closed: Promise<number | undefined>;
};

export type HttpServerOptions = {
  readonly limits: HttpLimits;
  readonly log: Log;
  /** Without it every request gets a new UUID. */
  readonly requestId?: (head: RequestHead) => string;
  /** It must not reject; if it does, the error is logged and the connection is cut. */
  handle(exchange: Exchange): Promise<HttpResponse>;
  /** The response to what is no request, or to a head that never arrived whole. */
  reject(kind: RequestErrorKind, requestId: string): HttpResponse;
  /** Takes a new connection and may wrap it, or destroys it and returns undefined. */
  readonly accept?: (socket: Socket) => Duplex | undefined;
};

/** A client that sends more behind one request is no client: its connection is cut off. */
const MAX_PIPELINED = 16;

/**
 * Of a connection, for as long as it is open. Not a map of the running requests: each table that a map leaves behind when it is
 * rehashed keeps the requests of that moment, and V8 collects these tables with the old generation only.
 */
type Connection = {
  /** The request that runs. */
  exchange: Exchange | undefined;
  /** How many requests came behind it. */
  pipelined: number;
};

type Running = {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly connection: Connection;
  onWritten(): void;
};

export class HttpServer {
  /** To listen with. */
  readonly listener: NetServer;
  readonly #options: HttpServerOptions;
  readonly #connections: Map<Duplex, Connection> = new Map();
  #running = 0;
  /** Of each request one until it is handled, and one until its response is written or cut off. */
  #unsettled = 0;
  readonly #onSettled: (() => void)[] = [];
  readonly #draining: AbortController = new AbortController();

  constructor(options: HttpServerOptions) {
    const { limits } = options;
    this.#options = options;
    const server = createServer({
      maxHeaderSize: limits.headBytes,
      headersTimeout: limits.headMs,
      // Of a body: the consumer knows how long it may take.
      requestTimeout: 0,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: Math.min(1000, Math.ceil(limits.headMs / 10)),
      // Checked by the API, whose response has the fields that every response has.
      requireHostHeader: false,
    });
    this.listener = server;
    const serve = server.listeners('connection');
    server.removeAllListeners('connection');
    server.on('connection', (raw: Socket) => {
      const socket = options.accept === undefined ? raw : options.accept(raw);
      if (socket === undefined) return;
      this.#connections.set(socket, { exchange: undefined, pipelined: 0 });
      socket.once('close', () => this.#connections.delete(socket));
      // A wrapped socket has all of a Socket that Node's server asks for.
      for (const listener of serve) listener.call(server, socket as Socket);
    });
    for (const event of ['request', 'checkContinue', 'checkExpectation'])
      server.on(event, (incoming, outgoing) => this.#receive(incoming, outgoing));
    server.on('connect', (incoming, socket) => this.#receiveConnect(incoming, socket));
    server.on('clientError', (error, socket) => this.#onClientError(error, socket));
    // For example when no file descriptor is left for a connection: open connections go on.
    server.on('listening', () =>
      server.on('error', ({ code }: NodeJS.ErrnoException) => options.log.warn({ error: code }, 'listener')),
    );
  }

  /** In place of `listener`: returns what serves the connections that another listener accepts. */
  serveAccepted(): (socket: Duplex) => void {
    // With this event node:http begins to watch its deadlines.
    this.listener.emit('listening');
    return (socket) => void this.listener.emit('connection', socket);
  }

  /** Requests whose response is not written yet. */
  get running(): number {
    return this.#running;
  }

  /** A request on this connection has no complete response yet. */
  isBusy(socket: Duplex): boolean {
    return this.#connections.get(socket)?.exchange !== undefined;
  }

  /**
   * Stops accepting and lets running requests end, at most for `drainMs`; each response ends its connection. Idle
   * connections end at once, or are served once more: a request may be on its way.
   */
  async close(drainMs: number, idle: 'end' | 'serve'): Promise<void> {
    this.#draining.abort(new DomainError('unavailable', 'This process is shutting down', 1000));
    // Not the close of node:http, which cuts off responses that are written and not yet sent.
    const closed = new Promise<void>((done) => NetServer.prototype.close.call(this.listener, () => done()));
    if (idle === 'end')
      for (const [socket, { exchange }] of this.#connections) if (exchange === undefined) socket.destroy();
    const expired = Promise.withResolvers<void>();
    const limit = setTimeout(expired.resolve, drainMs);
    await Promise.race([this.settled(), expired.promise]);
    clearTimeout(limit);
    for (const socket of this.#connections.keys()) socket.destroy();
    await closed;
    // It reports that the server is closed, and ends the timer of node:http.
    this.listener.close(() => undefined);
  }

  /** Resolves when every request is handled, however long that takes, also those whose client has left. */
  async settled(): Promise<void> {
    while (this.#unsettled > 0) await new Promise<void>((resolve) => this.#onSettled.push(resolve));
  }

  #settle(): void {
    this.#unsettled -= 1;
    if (this.#unsettled === 0) for (const resolve of this.#onSettled.splice(0)) resolve();
  }

  #receive(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming;
    // The parser reads what it was given to the end, even after the socket was destroyed.
    const connection = this.#connections.get(socket);
    if (socket.destroyed || connection === undefined) return;
    if (connection.exchange !== undefined) return ignorePipelined(socket, connection);
    const closed = Promise.withResolvers<number | undefined>();
    const left = new LeftSignal();
    const exchange = this.#open(incoming, outgoing, { left, closed: closed.promise });
    connection.exchange = exchange;
    this.#running += 1;
    let isWritten = false;
    // A client that has left: what it asked for is carried out all the same.
    outgoing.on('error', () => outgoing.destroy());
    outgoing.once('close', () => {
      connection.exchange = undefined;
      this.#running -= 1;
      if (connection.pipelined > 0) socket.end(() => socket.destroy());
      closed.resolve(isWritten ? outgoing.statusCode : undefined);
      if (!isWritten) left.abort();
      this.#settle();
    });
    this.#unsettled += 2;
    const running = { incoming, outgoing, connection, onWritten: () => (isWritten = true) };
    void this.#respond(exchange, running).then(() => this.#settle());
  }

  #open(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    { left, closed }: Pick<Exchange, 'closed'> & { readonly left: LeftSignal },
  ): Exchange {
    const head = readRequestHead(incoming);
    const onWanted = (): void => {
      if (head.expectsContinue) outgoing.writeContinue();
    };
    const startedMs = performance.now();
    const lateAtMs = startedMs + this.#options.limits.requestMs;
    return {
      head,
      body: new RequestBody(incoming, { head, onWanted, lateAtMs }),
      requestId: this.#options.requestId?.(head) ?? randomUUID(),
      socket: incoming.socket,
      startedMs,
      draining: this.#draining.signal,
      closed,
      left: () => left.signal,
    };
  }

  async #respond(exchange: Exchange, { incoming, outgoing, connection, onWritten }: Running): Promise<void> {
    const { requestId } = exchange;
    const { limits, log, handle } = this.#options;
    try {
      const response = await handle(exchange);
      const { signal } = this.#draining;
      const { idleMs = limits.requestMs, drainingIdleMs } = response;
      await sendResponse(incoming, outgoing, response, {
        ...{ requestId, idleMs, onWritten },
        isLast: signal.aborted || connection.pipelined > 0,
        ...(drainingIdleMs !== undefined && { draining: { signal, idleMs: drainingIdleMs } }),
      });
    } catch (error) {
      // The operator learns of it, and nobody waits for a response that will not come.
      if (!(error instanceof EndedEarly))
        log.error({ ...describeBug(error), request: requestId }, 'request failed');
      incoming.socket.destroy();
    }
  }

  /** Node hands over the bare socket of a CONNECT; it is handled, and rejected, as any other request. */
  #receiveConnect(incoming: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => socket.destroy());
    // A response would be taken for that of the request before it.
    if (this.isBusy(socket)) return void socket.destroy();
    const outgoing = new ServerResponse(incoming);
    outgoing.assignSocket(socket as Socket);
    outgoing.on('finish', () => (socket as Socket).destroySoon());
    this.#receive(incoming, outgoing);
  }

  /** A malformed head, a body with broken framing, either of them too late, or a client that has left. */
  #onClientError({ code = '' }: NodeJS.ErrnoException, socket: Duplex): void {
    const kind = errorKindOf(code);
    const exchange = this.#connections.get(socket)?.exchange;
    const isBodyAwaited = exchange?.body.interrupt(kind) === true;
    if (isBodyAwaited && kind !== 'client_gone') return;
    // A response to garbage behind a request would be taken for the response to that request.
    if (kind === 'client_gone' || exchange !== undefined || !socket.writable) return void socket.destroy();
    const requestId = randomUUID();
    sendOnSocket(socket, this.#options.reject(kind, requestId), requestId);
  }
}

/**
 * One request at a time: Node would hold any number of pipelined ones, and loses count when one is cut. The first
 * gets its response, which ends the connection: the client sends the others again (RFC 9112 §9.3.2).
 */
function ignorePipelined(socket: Duplex, connection: Connection): void {
  connection.pipelined += 1;
  if (connection.pipelined > MAX_PIPELINED) socket.destroy();
}

function errorKindOf(code: string): RequestErrorKind {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'late';
  if (code === 'HPE_HEADER_OVERFLOW') return 'head_too_large';
  // The parser's code for a client that ends before its request does; other codes are the system's.
  return code.startsWith('HPE_') && code !== 'HPE_INVALID_EOF_STATE' ? 'malformed' : 'client_gone';
}

/** For a connection on which Node's parser failed: there is no request, and no ServerResponse. */
function sendOnSocket(socket: Duplex, { status, fields, body = '' }: HttpResponse, requestId: string): void {
  const text = String(body);
  const all = {
    ...commonFields(requestId),
    ...fields,
    'Content-Length': Buffer.byteLength(text),
    Connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${text}`, () =>
    socket.destroy(),
  );
}
