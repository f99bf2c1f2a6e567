// The data plane of the boxes: commands, files and searches over HTTP and WebSocket. Whoever hands over a connection has
// authenticated its requests and says which box they are for; nothing here knows of callers.
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { describeBug, type Log } from '../../base/log.ts';
import { type Exchange, type HttpLimits, HttpServer } from '../../base/http/http-server.ts';
import { EndedEarly, type HttpResponse } from '../../base/http/http-response.ts';
import { RequestError } from '../../base/http/request-body.ts';
import { AgentError } from '../agents/agent-error.ts';
import type { BoxAgents } from '../agents/box-agents.ts';
import { errorToResponse, type Operation, refuse, requestErrorToResponse } from './data-plane-error.ts';
import { download } from './download.ts';
import { execute } from './execute.ts';
import { ExecuteSocket } from './execute-socket.ts';
import { globFiles, grepFiles } from './search.ts';
import { defaultSendLimits, SendBudget, type SendLimits } from './send-budget.ts';
import { upload } from './upload.ts';
import { acceptWebSocket } from './web-socket.ts';

type Handle = (
  agents: BoxAgents,
  box: string,
  exchange: Exchange,
  query: URLSearchParams,
) => Promise<HttpResponse>;
type Route = { readonly methods: readonly string[]; readonly operation: Operation; readonly handle: Handle };

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['/execute', { methods: ['POST'], operation: 'CommandError', handle: execute }],
  ['/upload', { methods: ['POST'], operation: 'WriteError', handle: upload }],
  ['/download', { methods: ['GET', 'HEAD'], operation: 'ReadError', handle: download }],
  ['/glob', { methods: ['POST'], operation: 'ReadError', handle: globFiles }],
  ['/grep', { methods: ['POST'], operation: 'ReadError', handle: grepFiles }],
]);

const SOCKET_PATH = '/execute/ws';
/** Known to clients, and not there yet. */
const NOT_SUPPORTED = /^\/(?:tunnel|execute\/stream\/[a-z]+)$/;

/** WebSockets of one box: each is followed by the box's commands. */
const MAX_SOCKETS = 64;

const LIMITS: HttpLimits = { headBytes: 16_384, headMs: 10_000, requestMs: 60_000, keepAliveMs: 60_000 };

export class DataPlane {
  readonly #agents: BoxAgents;
  readonly #log: Log;
  readonly #server: HttpServer;
  readonly #accept: (socket: Duplex) => void;
  /** Which box a connection is for. */
  readonly #boxes: WeakMap<Duplex, string> = new WeakMap();
  readonly #sockets: Set<ExecuteSocket> = new Set();
  readonly #budget: SendBudget;

  constructor(agents: BoxAgents, log: Log, sendLimits: SendLimits = defaultSendLimits) {
    this.#agents = agents;
    this.#log = log;
    this.#budget = new SendBudget(sendLimits);
    this.#server = new HttpServer({
      limits: LIMITS,
      log,
      handle: (exchange) => this.#handle(exchange),
      reject: requestErrorToResponse,
    });
    this.#accept = this.#server.serveAccepted();
    this.#server.listener.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
      void this.#upgrade(incoming, socket, head);
    });
  }

  /** Serves the requests on a connection, all for one box. */
  serve(connection: Duplex, box: string): void {
    this.#boxes.set(connection, box);
    // Head and body are two writes: the second must not wait for the client's acknowledgement of the first.
    if (connection instanceof Socket) connection.setNoDelay(true);
    this.#accept(connection);
  }

  /** Clients with a WebSocket are asked to connect again; running requests end, at most for `drainMs`. */
  async close(drainMs: number): Promise<void> {
    for (const socket of this.#sockets) socket.leave();
    await this.#server.close(drainMs, 'end');
  }

  async #handle(exchange: Exchange): Promise<HttpResponse> {
    const box = this.#boxes.get(exchange.socket);
    const { path, query } = splitTarget(exchange.head.target);
    const route = ROUTES.get(path);
    if (box === undefined) throw new Error('a request on a connection without a box');
    if (route === undefined) return refuseUnknown(path);
    if (!route.methods.includes(exchange.head.method))
      return refuse(405, 'MethodNotAllowed', `Use ${route.methods.join(' or ')}`, {
        Allow: route.methods.join(', '),
      });
    if (!exchange.head.isFramedPlainly) return requestErrorToResponse('malformed');
    try {
      return await route.handle(this.#agents, box, exchange, query);
    } catch (error) {
      if (error instanceof RequestError && error.kind === 'client_gone') throw new EndedEarly();
      const response = errorToResponse(error, route.operation);
      if (response !== undefined) return response;
      this.#log.error({ ...describeBug(error), box, request: exchange.requestId }, 'request failed');
      return refuse(500, 'InternalError', 'The request failed');
    }
  }

  async #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy());
    const box = this.#boxes.get(socket);
    const { path } = splitTarget(incoming.url ?? '');
    if (box === undefined || path !== SOCKET_PATH) return sendRefusal(socket, refuseUnknown(path));
    const open = this.#sockets.values().filter((other) => other.box === box);
    if ([...open].length >= MAX_SOCKETS)
      return sendRefusal(socket, errorToResponse(new AgentError('busy'), 'CommandError'));
    try {
      await acceptWebSocket(incoming, socket, head, (accepted) => {
        const session = new ExecuteSocket(box, accepted, {
          agents: this.#agents,
          budget: this.#budget,
          onBug: (error) => this.#report(error, box),
        });
        this.#sockets.add(session);
        return {
          onText: (text) => session.onText(text),
          onClose: () => {
            this.#sockets.delete(session);
            session.onClose();
          },
        };
      });
    } catch (error) {
      this.#report(error, box);
      socket.destroy();
    }
  }

  #report(error: unknown, box: string): void {
    this.#log.error({ ...describeBug(error), box }, 'WebSocket failed');
  }
}

function splitTarget(target: string): { readonly path: string; readonly query: URLSearchParams } {
  const at = target.indexOf('?');
  const path = at === -1 ? target : target.slice(0, at);
  return { path, query: new URLSearchParams(at === -1 ? '' : target.slice(at + 1)) };
}

function refuseUnknown(path: string): HttpResponse {
  if (NOT_SUPPORTED.test(path) || path === SOCKET_PATH) {
    const message =
      path === SOCKET_PATH ? 'Connect with a WebSocket' : 'This operation is not supported by this server';
    return path === SOCKET_PATH
      ? refuse(426, 'UpgradeRequired', message, { Upgrade: 'websocket' })
      : refuse(501, 'NotSupported', message);
  }
  return refuse(404, 'NotFound', 'There is no such operation');
}

/** In place of an upgrade. */
function sendRefusal(socket: Duplex, response: HttpResponse | undefined): void {
  const { status, fields = {}, body } = response ?? { status: 500 };
  const text = String(body ?? '');
  const all = { ...fields, 'Content-Length': String(Buffer.byteLength(text)), Connection: 'close' };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${text}`, () =>
    socket.destroy(),
  );
}
