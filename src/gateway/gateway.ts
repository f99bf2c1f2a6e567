// The reverse proxy to ports of sandboxes and deployments. It knows neither: its owner finds the target of each request and
// decides who may use it.
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { describeBug } from '../base/log.ts';
import { ClientConnection } from './client-connection.ts';
import type { GatewayContext } from './context.ts';
import { type DecisionOptions, Decisions } from './decisions.ts';
import { createForwarder, type Forwarder } from './forwarder.ts';
import { defaultLimits, type GatewayLimits, headLimitsOf, RETRY_MS } from './limits.ts';
import type { GatewayRecord } from './record.ts';
import { refusalBytes, refuse, type WriteRefusal } from './refusal.ts';
import type { ServedSocket } from './served-socket.ts';

export type GatewayOptions = DecisionOptions & {
  readonly onRecord: (record: GatewayRecord) => void;
  readonly limits?: Partial<GatewayLimits>;
  /** Another format of the gateway's own responses. */
  readonly writeRefusal?: WriteRefusal;
  /** False for an address that many clients share, such as that of a proxy: its connections are not limited by themselves. */
  limitsAddress?(address: string): boolean;
};

export type Gateway = {
  /** To listen with. Sockets that another server accepts, with TLS for example, go to `serve`; it must allow half-open ones. */
  readonly listener: Server;
  serve(socket: Socket): void;
  readonly connections: number;
  /** Stops accepting. Running requests and upgraded connections may end until `drainMs` have passed; then they are cut. */
  close(drainMs: number): Promise<void>;
};

export function createGateway(options: GatewayOptions): Gateway {
  return new ConnectedGateway(options);
}

/** More than the fields take that the gateway and its owner add. */
const ADDED_BYTES = 2_048;
const SWEEPS_PER_LIMIT = 8;
const MIN_SWEEP_MS = 5;
const MAX_SWEEP_MS = 1_000;

class ConnectedGateway implements Gateway {
  readonly listener: Server;
  readonly #options: GatewayOptions;
  readonly #limits: GatewayLimits;
  readonly #context: GatewayContext;
  readonly #decisions: Decisions;
  readonly #forwarder: Forwarder;
  readonly #clients = new Set<ClientConnection>();
  readonly #perAddress = new Map<string, number>();
  readonly #http: HttpServer;
  readonly #sweep: NodeJS.Timeout;
  #isDraining = false;
  #onEmpty: (() => void) | undefined;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#decisions = new Decisions(options, this.#limits);
    this.#forwarder = createForwarder(this.#limits, options.writeRefusal);
    this.#context = {
      limits: this.#limits,
      headLimits: headLimitsOf(this.#limits),
      log: options.log,
      refusalBytes(refusal, isLast, exchange) {
        const { plan: { method } = { method: 'GET' }, target } = exchange ?? {};
        return refusalBytes(refusal, {
          ...{ method, isLast, fields: target?.refusalFields, write: options.writeRefusal },
        });
      },
      isDraining: () => this.#isDraining,
      decide: (exchange, client) => this.#decisions.decide(exchange, client),
      record: (record) => this.#record(record),
    };
    // Our parser has counted fields and bytes; here they must pass, with the fields that were added.
    const maxHeaderSize = this.#limits.maxHeadBytes + ADDED_BYTES;
    this.#http = createHttpServer(
      { keepAliveTimeout: 0, requireHostHeader: false, maxHeaderSize },
      (incoming, outgoing) => this.#onRequest(incoming, outgoing),
    );
    this.#http.maxHeadersCount = 0;
    // Cannot happen, because node:http gets canonical bytes only; if it does, nothing more of this client is read.
    this.#http.on('clientError', (error, socket) => {
      options.log.error(describeBug(error), 'node:http refused a canonical request');
      (socket as unknown as ServedSocket<ClientConnection>).owner.raw.destroy();
    });
    this.listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.serve(socket));
    this.#sweep = setInterval(() => this.#checkIdle(), sweepMs(this.#limits)).unref();
  }

  get connections(): number {
    return this.#clients.size;
  }

  serve(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const fromAddress = this.#perAddress.get(address) ?? 0;
    const { maxConnections, maxConnectionsPerAddress } = this.#limits;
    if (this.#isDraining) return this.#reject(socket, 'draining');
    const isLimited = this.#options.limitsAddress?.(address) ?? true;
    if (this.#clients.size >= maxConnections || (isLimited && fromAddress >= maxConnectionsPerAddress))
      return this.#reject(socket, 'too_many_connections');
    const client = new ClientConnection(socket, this.#context);
    this.#clients.add(client);
    this.#perAddress.set(address, fromAddress + 1);
    socket.once('close', () => this.#forget(client, address));
    this.#http.emit('connection', client.served);
  }

  async close(drainMs: number): Promise<void> {
    this.#isDraining = true;
    const { promise: empty, resolve } = Promise.withResolvers<void>();
    this.#onEmpty = resolve;
    const closed = new Promise<void>((done) => void this.listener.close(() => done()));
    for (const client of this.#clients) client.drain();
    const limit = setTimeout(() => {
      for (const client of this.#clients) client.abort();
    }, drainMs);
    if (this.#clients.size > 0) await empty;
    clearTimeout(limit);
    clearInterval(this.#sweep);
    this.#forwarder.close();
    await closed;
  }

  #onRequest(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { owner } = incoming.socket as unknown as ServedSocket<ClientConnection>;
    const { exchange } = owner;
    if (!exchange) return void owner.raw.destroy();
    try {
      this.#forwarder.forward(owner, exchange, incoming, outgoing);
    } catch (error) {
      owner.fail(error);
    }
  }

  #record(record: GatewayRecord): void {
    try {
      this.#options.onRecord(record);
    } catch (error) {
      this.#options.log.error(describeBug(error), 'a record was not taken');
    }
  }

  #reject(socket: Socket, code: 'draining' | 'too_many_connections'): void {
    socket.on('error', () => socket.destroy());
    const refusal = refuse(code, { retryAfterMs: RETRY_MS });
    socket.end(this.#context.refusalBytes(refusal, true), () => socket.destroy());
  }

  #forget(client: ClientConnection, address: string): void {
    this.#clients.delete(client);
    const left = (this.#perAddress.get(address) ?? 1) - 1;
    if (left > 0) this.#perAddress.set(address, left);
    else this.#perAddress.delete(address);
    if (this.#clients.size === 0) this.#onEmpty?.();
  }

  #checkIdle(): void {
    const nowMs = performance.now();
    this.#decisions.expire(nowMs);
    for (const client of this.#clients)
      try {
        client.checkIdle(nowMs);
      } catch (error) {
        client.fail(error);
      }
  }
}

/** A timeout is late by at most an eighth of the shortest. */
function sweepMs(limits: GatewayLimits): number {
  const { keepAliveMs, decideMs, clientIdleMs, responseIdleMs, finWaitMs, upgradedIdleMs, halfClosedMs } =
    limits;
  const shortest = Math.min(
    keepAliveMs,
    decideMs,
    clientIdleMs,
    responseIdleMs,
    finWaitMs,
    upgradedIdleMs,
    halfClosedMs,
  );
  return Math.min(MAX_SWEEP_MS, Math.max(MIN_SWEEP_MS, shortest / SWEEPS_PER_LIMIT));
}
