// A request on its way to its target: its response or 101, or the refusal that the client gets when there is none.
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { buildHead } from '../http1/head-writer.ts';
import type { ClientConnection } from './client-connection.ts';
import { NotConnected } from './dialing-agent.ts';
import type { Exchange } from './exchange.ts';
import { CONTINUE_MS } from './limits.ts';
import { type Refusal, type RefusalCode, refusalParts, refuse, type WriteRefusal } from './refusal.ts';
import type { RequestPlan } from './request-plan.ts';
import { relayBody, responseFields, sendHead } from './response-relay.ts';

type Parts = {
  readonly client: ClientConnection;
  readonly exchange: Exchange;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly writeRefusal: WriteRefusal | undefined;
  send(request: ForwardedRequest, connection: 'kept' | 'fresh' | 'upgraded'): void;
};

/** RFC 9110 §9.2.2. */
const idempotent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

export class ForwardedRequest {
  readonly #parts: Parts;
  #request: ClientRequest | undefined;
  #hasResponse = false;
  #isRetry = false;
  #continueTimer: NodeJS.Timeout | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  start(): void {
    const { client, exchange, outgoing, send } = this.#parts;
    exchange.forwarding = this;
    // Before the listener of node:http, which ends the connection after a last response.
    outgoing.prependListener('finish', () => {
      if (client.exchange === exchange) client.finishExchange();
    });
    outgoing.on('error', () => undefined);
    if (exchange.plan.expectsContinue)
      this.#continueTimer = setTimeout(() => this.onContinue(), CONTINUE_MS).unref();
    send(this, connectionFor(exchange.plan));
  }

  onCreated(request: ClientRequest): void {
    this.#request = request;
    request.on('upgrade', (response, socket: Duplex, rest) => this.#onUpgrade(response, socket, rest));
    // Also where node:http gives up without an error, as for a 101 that was not asked for.
    request.on('close', () => {
      if (this.#request === request && !this.#hasResponse) this.#fail('target_closed');
    });
  }

  onContinue(): void {
    clearTimeout(this.#continueTimer);
    const { client, exchange } = this.#parts;
    if (client.exchange === exchange && !this.#hasResponse) client.continueBody();
  }

  onBytes(count: number): void {
    this.#parts.exchange.bytesUp += count;
  }

  onResponse(response: IncomingMessage): void {
    const { client, exchange, outgoing } = this.#parts;
    if (this.#hasResponse || client.exchange !== exchange) return void response.destroy();
    if (!sendHead(response, outgoing, { isLast: client.isLast, target: exchange.target })) {
      this.#fail('target_response_invalid');
      return void response.destroy();
    }
    this.#hasResponse = true;
    clearTimeout(this.#continueTimer);
    exchange.status = response.statusCode;
    relayBody(response, outgoing, {
      onBytes: (count) => void (exchange.bytesDown += count),
      onCut: () => this.#cut(),
    });
  }

  onError(error: NodeJS.ErrnoException): void {
    // A target may respond and stop reading, or close: whether its response is complete is seen at the response.
    if (this.#hasResponse) return;
    const { exchange, outgoing, send } = this.#parts;
    const isStale =
      this.#request?.reusedSocket === true && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
    const { method, framing } = exchange.plan;
    // The target closed the connection while the request was on its way. A request without effects or body can be repeated.
    if (isStale && !this.#isRetry && framing.kind === 'none' && idempotent.has(method)) {
      if (outgoing.destroyed) return;
      this.#isRetry = true;
      this.#request = undefined;
      return send(this, 'fresh');
    }
    this.#fail(error instanceof NotConnected ? error.refusal : codeOf(error));
  }

  expire(): void {
    this.#fail('target_timeout');
  }

  #onUpgrade(response: IncomingMessage, socket: Duplex, rest: Buffer): void {
    const { client, exchange } = this.#parts;
    socket.on('error', () => socket.destroy());
    const isWanted = exchange.plan.isUpgrade && client.exchange === exchange;
    if (!isWanted || this.#hasResponse || response.headers.upgrade?.toLowerCase() !== 'websocket') {
      socket.destroy();
      return this.#fail('target_response_invalid');
    }
    this.#hasResponse = true;
    exchange.status = 101;
    const fields = pairs(responseFields(response, exchange.target)).filter(
      ([name]) => name.toLowerCase() !== 'content-length',
    );
    const upgrade = [
      ['Connection', 'Upgrade'],
      ['Upgrade', 'websocket'],
    ] as const;
    client.upgrade(socket, buildHead('HTTP/1.1 101 Switching Protocols', [...fields, ...upgrade]), rest);
  }

  #cut(): void {
    const { client, exchange } = this.#parts;
    if (client.exchange === exchange) client.cut();
  }

  #fail(cause: RefusalCode | Refusal): void {
    const { client, exchange, outgoing, writeRefusal } = this.#parts;
    const request = this.#request;
    this.#request = undefined;
    clearTimeout(this.#continueTimer);
    if (exchange.status === 101) return;
    const isOver = client.exchange !== exchange || outgoing.writableEnded;
    if (!isOver && this.#hasResponse) this.#cut();
    else if (!isOver) {
      this.#hasResponse = true;
      const refusal = typeof cause === 'string' ? refuse(cause) : cause;
      Object.assign(exchange, { status: refusal.status, refusal: refusal.code });
      const { fields, body } = refusalParts(refusal, {
        ...{ isLast: client.isLast, fields: exchange.target?.refusalFields, write: writeRefusal },
      });
      outgoing.writeHead(refusal.status, fields.flat()).end(body);
    }
    request?.destroy();
  }
}

/** Content has no meaning with other methods (RFC 9110 §9.3): a server that ignores it reads it as its next request. */
const withContent: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

function connectionFor({ method, framing, isUpgrade }: RequestPlan): 'kept' | 'fresh' | 'upgraded' {
  if (isUpgrade) return 'upgraded';
  return framing.kind === 'none' || withContent.has(method) ? 'kept' : 'fresh';
}

function pairs(flat: readonly string[]): (readonly [string, string])[] {
  return flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? ''] as const] : []));
}

const unreachable: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'ENOTFOUND',
  'EACCES',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

function codeOf({ code = '' }: NodeJS.ErrnoException): RefusalCode {
  if (code === 'ECONNECT_TIMEOUT' || code === 'ETIMEDOUT') return 'target_timeout';
  if (code.startsWith('HPE_')) return 'target_response_invalid';
  return unreachable.has(code) ? 'target_unreachable' : 'target_closed';
}
