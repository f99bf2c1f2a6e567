// Takes requests in from Node's server, has them answered and knows which are under way. It must not know what a route
// does, nor how one is found: `route` is told.
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { describeBug } from '../base/log.ts';
import { sendResponse, sendRawResponse } from './answer-out.ts';
import { refused } from './answer.ts';
import { type Connection, ConnectionTable, type Places } from './connection-table.ts';
import { type AdminScope, respondToArrival, type Arrival, noRoute, type RouteMatch } from './exchange.ts';
import { type BodyError, RequestBody } from './request-body.ts';
import { readHead } from './request-head.ts';

export type DeskLimits = Places & {
  readonly bodyBytes: number;
  /** For a whole request, and again for its answer to be read. */
  readonly requestMs: number;
};

/** What one request needs until it is answered. */
export type Case = {
  readonly arrival: Arrival;
  readonly body: RequestBody;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
};

/** Has a case answered, by a call of `answer` with what it found for the path. */
export type Router = (one: Case, path: string) => Promise<void>;

export class Desk {
  readonly #scope: AdminScope;
  readonly #limits: DeskLimits;
  readonly #connections: ConnectionTable;
  readonly #running: Set<Promise<void>> = new Set();
  readonly #route: Router;
  #isClosing = false;

  constructor(scope: AdminScope, limits: DeskLimits, route: Router) {
    this.#scope = scope;
    this.#limits = limits;
    this.#route = route;
    this.#connections = new ConnectionTable(limits);
  }

  attach(server: Server): void {
    this.#pace(server);
    server.on('checkContinue', (incoming, outgoing) => this.receive(incoming, outgoing));
    server.on('checkExpectation', (incoming, outgoing) => this.receive(incoming, outgoing));
    server.on('connect', (incoming, socket) => this.#receiveBare(incoming, socket as Socket));
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#giveUp(error, socket as Socket));
  }

  /** Puts itself between the server and its connections. */
  #pace(server: Server): void {
    const serve = server.listeners('connection');
    server.removeAllListeners('connection');
    server.on('connection', (raw) => {
      const socket = this.#connections.add(raw);
      // It has all of a Socket that the server asks for.
      if (socket !== undefined)
        for (const listener of serve) listener.call(server, socket as unknown as Socket);
    });
  }

  receive(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const connection = this.#connections.get(incoming.socket);
    // The parser reads what it was given to the end, whatever became of the socket.
    if (connection === undefined || incoming.socket.destroyed) return;
    // Nobody may have more than one request answered at once: Node would keep them all, and loses count when one is cut.
    if (isResponding(connection)) return void incoming.socket.destroy();
    const one = this.#open(incoming, outgoing, connection);
    const { head } = one.arrival;
    connection.running += 1;
    connection.body = one.body;
    connection.response = outgoing;
    outgoing.once('close', () => (connection.running -= 1));
    // Whoever waits for this answer has left; what was asked for is done and recorded all the same.
    outgoing.on('error', () => outgoing.destroy());
    const responded =
      head.path === undefined || head.host === undefined || !head.isOriginForm
        ? this.response(one, noRoute)
        : this.#route(one, head.path);
    const work = responded.catch((error: unknown) => this.fail(one, error));
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  /** For what nobody foresaw: the operator is told, and nobody waits for an answer that will not come. */
  fail({ arrival, incoming }: Case, error: unknown): void {
    this.#scope.log.error({ ...describeBug(error), request: arrival.request }, 'admin request failed');
    incoming.socket.destroy();
  }

  /** Of a CONNECT Node hands over the bare socket; it is refused like everything that a proxy is sent. */
  #receiveBare(incoming: IncomingMessage, socket: Socket): void {
    socket.on('error', () => socket.destroy());
    // It came behind a request that is not answered yet: an answer to it would be taken for that one's.
    const connection = this.#connections.get(socket);
    if (connection === undefined || isResponding(connection)) return void socket.destroy();
    const outgoing = new ServerResponse(incoming);
    outgoing.assignSocket(socket);
    outgoing.on('finish', () => socket.destroySoon());
    this.receive(incoming, outgoing);
  }

  async close(server: Server, drainMs: number): Promise<void> {
    this.#isClosing = true;
    const { promise: expired, resolve } = Promise.withResolvers<void>();
    const limit = setTimeout(() => {
      this.#connections.destroyAll();
      resolve();
    }, drainMs);
    // Not the close of an HTTP server: that one cuts off answers that are written and not yet sent.
    const closed = new Promise<void>((done) => NetServer.prototype.close.call(server, () => done()));
    this.#connections.destroyIdle();
    await Promise.race([Promise.all([closed, ...this.#running]), expired]);
    await closed;
    clearTimeout(limit);
    // It says that the server is closed, and ends its timer.
    server.close(() => undefined);
    this.#scope.outsiders.settle();
  }

  /** What was cut too: a write that is being kept is done, whoever has left. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
    this.#scope.outsiders.settle();
  }

  #open(incoming: IncomingMessage, outgoing: ServerResponse, connection: Connection): Case {
    const head = readHead(incoming);
    const body = new RequestBody(incoming, this.#limits.bodyBytes);
    const arrival: Arrival = {
      request: randomUUID(),
      head,
      client: connection.socket.remoteAddress,
      startedMs: performance.now(),
      onTrusted: () => this.#connections.trust(connection),
      readDocument: () => {
        if (head.wantsContinue && !body.isTooLong) outgoing.writeContinue();
        return body.read();
      },
    };
    return { arrival, body, incoming, outgoing };
  }

  async response({ arrival, body, incoming, outgoing }: Case, match: RouteMatch): Promise<void> {
    const response = await respondToArrival(this.#scope, arrival, match);
    sendResponse(incoming, outgoing, response, {
      request: arrival.request,
      isLast: this.#isClosing || !arrival.head.isOriginForm,
      isBodyUnread: arrival.head.hasBody && !body.isWhole,
      sendMs: this.#limits.requestMs,
    });
  }

  /** A head that is none, a body that is framed wrongly, either of them too late, or a client that has left. */
  #giveUp({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#connections.get(socket);
    const error = errorOf(code);
    const isReading = connection?.body?.interrupt(error) === true;
    if (error === 'gone') socket.destroy();
    else if (isReading) return;
    // An answer is under way, and another one beside it would be taken for it.
    else if (!socket.writable || (connection !== undefined && connection.running > 0)) socket.destroy();
    else
      sendRawResponse(
        socket,
        code === 'HPE_HEADER_OVERFLOW' ? LONG : error === 'late' ? LATE : BAD,
        randomUUID(),
      );
  }
}

function isResponding({ response }: Connection): boolean {
  return response !== undefined && !response.writableEnded;
}

function errorOf(code: string): BodyError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'late';
  // The parser's words for a client that ends before its request does; the system has others.
  return code.startsWith('HPE_') && code !== 'HPE_INVALID_EOF_STATE' ? 'malformed' : 'gone';
}

const LATE = refused({ status: 408, reason: 'late', detail: 'Send the whole request sooner' });
const LONG = refused({ status: 431, reason: 'head', detail: 'Send fewer or shorter header fields' });
const BAD = refused({ status: 400, reason: 'head', detail: 'This is not an HTTP/1.1 request: correct it' });
