// Takes requests in from node's server, has them answered and knows which are under way. Every request leaves one line
// in the log. It must not know what a route does.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { describeBug, type Log } from '../../base/log.ts';
import { sendRaw, sendResponse } from './answer-out.ts';
import { type Api, toResponse } from './answering.ts';
import { type TrustedProxies, clientAddress } from './client-address.ts';
import { hasBody, judgeHead, valuesOf } from './head-judging.ts';
import type { ServerLimits } from './limits.ts';
import { type Reply, Unreadable, refusal } from './problem.ts';
import { type RequestStream, createRequestStream } from './request-stream.ts';

/** What is told of a request when it is over. */
export type Responded = {
  readonly method: string;
  /** The route's path with its braces, never what stood there; undefined where there is none. */
  readonly route: string | undefined;
  /** 499: the client left before its answer was written. */
  readonly status: number;
  readonly seconds: number;
};

export type ReceptionOptions = {
  readonly api: Api;
  readonly limits: ServerLimits;
  readonly trustedProxies: TrustedProxies;
  readonly log: Log;
  onResponded(responded: Responded): void;
};

/** One request until its answer is out. */
type Exchange = {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly requestId: string;
  readonly startedMs: number;
  readonly body: RequestStream | undefined;
  /** Aborts when the client leaves before its answer was written. */
  readonly left: AbortController;
  readonly known: { route?: string; keyId?: string; cause?: string | undefined };
  isWritten: boolean;
};

export class Reception {
  readonly #options: ReceptionOptions;
  readonly #exchanges: Map<Socket, Exchange> = new Map();
  #isClosing = false;
  #onIdle: (() => void) | undefined;

  constructor(options: ReceptionOptions) {
    this.#options = options;
  }

  /** Requests that are not answered yet. */
  get running(): number {
    return this.#exchanges.size;
  }

  /** From now on each answer ends its connection. Resolves when nothing is under way. */
  async drain(): Promise<void> {
    this.#isClosing = true;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    if (this.running > 0) await promise;
  }

  /** `refused`: what node itself found wrong with it. */
  receive(incoming: IncomingMessage, outgoing: ServerResponse, refused?: Reply): void {
    const { socket } = incoming;
    // Nobody may have more than one request answered at once: node would keep them all.
    if (this.#exchanges.has(socket)) return void socket.destroy();
    const walk = open(incoming, outgoing);
    this.#exchanges.set(socket, walk);
    outgoing.on('error', () => outgoing.destroy());
    outgoing.once('close', () => this.#leave(walk));
    const reply = refused ?? judgeHead(incoming);
    const response = reply ? Promise.resolve(toResponse(reply)) : this.#ask(walk);
    void this.#send(walk, response, this.#isClosing || reply !== undefined);
  }

  /** Of a CONNECT node hands over the bare socket. */
  refuseConnect(incoming: IncomingMessage, socket: Socket): void {
    socket.on('error', () => socket.destroy());
    // Behind a request that is not answered yet, an answer would be taken for that one's.
    if (this.#exchanges.has(socket)) return void socket.destroy();
    this.#refuseBare(socket, refusal(405, 'This is not a proxy'), idOf(incoming));
  }

  /** A head that is none, a body that is framed wrongly, either of them too late, or a client that has left. */
  giveUp({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
    const error = errorOf(code);
    const walk = this.#exchanges.get(socket);
    if (error !== undefined && walk?.body?.interrupt(error) === true) return;
    if (error === undefined || walk !== undefined || !socket.writable) return void socket.destroy();
    this.#refuseBare(socket, refusal(error.status, error.message), randomUUID());
  }

  #refuseBare(socket: Socket, reply: Reply, requestId: string): void {
    this.#options.onResponded({ method: 'other', route: undefined, status: reply.status, seconds: 0 });
    this.#options.log.info({ status: reply.status, request: requestId }, 'request');
    sendRaw(socket, reply, requestId);
  }

  #ask({ incoming, requestId, body, left, known }: Exchange): Promise<Response> {
    const { socket, rawHeaders } = incoming;
    const forwardedFor = valuesOf(rawHeaders, 'x-forwarded-for').join(',');
    return this.#options.api(toRequest(incoming, requestId, body?.stream, left.signal), {
      requestId,
      ...clientAddress(socket, forwardedFor, this.#options.trustedProxies),
      note: (facts) => void Object.assign(known, facts),
    });
  }

  async #send(walk: Exchange, response: Promise<Response>, isLast: boolean): Promise<void> {
    const { incoming, outgoing, requestId } = walk;
    try {
      const found = await response;
      await sendResponse(incoming, outgoing, found, {
        requestId,
        isLast: isLast || this.#isClosing,
        sendMs: this.#options.limits.requestMs,
        onWritten: () => void (walk.isWritten = true),
      });
    } catch (error) {
      // The operator is told, and nobody waits for an answer that will not come.
      this.#options.log.error({ ...describeBug(error), request: requestId }, 'request failed');
      incoming.socket.destroy();
    }
  }

  #leave({ incoming, outgoing, requestId, startedMs, left, known, isWritten }: Exchange): void {
    this.#exchanges.delete(incoming.socket);
    if (!isWritten) left.abort();
    const method = METHODS.has(incoming.method ?? '') ? String(incoming.method) : 'other';
    const status = isWritten ? outgoing.statusCode : 499;
    const ms = performance.now() - startedMs;
    this.#options.onResponded({ method, route: known.route, status, seconds: ms / 1000 });
    this.#options.log.info(
      {
        method,
        path: known.route,
        status,
        ms: Math.round(ms * 100) / 100,
        key: known.keyId,
        cause: known.cause,
        request: requestId,
      },
      'request',
    );
    if (this.running === 0) this.#onIdle?.();
  }
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

function open(incoming: IncomingMessage, outgoing: ServerResponse): Exchange {
  const { rawHeaders, httpVersion, method = '' } = incoming;
  const isBodied = method !== 'GET' && method !== 'HEAD' && hasBody(rawHeaders);
  // HTTP/1.0 has no interim answers (RFC 9110 §10.1.1).
  const wantsContinue = httpVersion === '1.1' && valuesOf(rawHeaders, 'expect').length > 0;
  const onWanted = (): void => {
    if (wantsContinue) outgoing.writeContinue();
  };
  return {
    incoming,
    outgoing,
    requestId: idOf(incoming),
    startedMs: performance.now(),
    body: isBodied ? createRequestStream(incoming, onWanted) : undefined,
    left: new AbortController(),
    known: {},
    isWritten: false,
  };
}

/** A well-formed X-Request-Id is kept, so that one id names a request on all its way. */
function idOf({ rawHeaders }: IncomingMessage): string {
  const [id = '', ...more] = valuesOf(rawHeaders, 'x-request-id');
  return more.length === 0 && /^[A-Za-z0-9._-]{1,128}$/.test(id) ? id : randomUUID();
}

/** The head is judged by then, so nothing in it can mislead whoever reads the URL. */
function toRequest(
  { url = '', method = '', rawHeaders }: IncomingMessage,
  requestId: string,
  body: ReadableStream<Uint8Array> | undefined,
  signal: AbortSignal,
): Request {
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(String(rawHeaders[at]), String(rawHeaders[at + 1]));
  headers.set('x-request-id', requestId);
  const rest = body === undefined ? {} : { body, duplex: 'half' as const };
  return new Request(`http://localhost${url}`, { method, headers, signal, ...rest });
}

/** Undefined where nobody is left to be told. */
function errorOf(code: string): Unreadable | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Unreadable(408, 'Send the whole request sooner');
  if (code === 'HPE_HEADER_OVERFLOW') return new Unreadable(431, 'Send fewer or shorter header fields');
  // The parser's words for a client that ends before its request does; the system has others.
  if (!code.startsWith('HPE_') || code === 'HPE_INVALID_EOF_STATE') return undefined;
  return new Unreadable(400, 'This is not an HTTP/1.1 request: correct it');
}
