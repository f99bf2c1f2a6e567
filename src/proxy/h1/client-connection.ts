// A client's HTTP/1.1 connection: parses the heads, runs one exchange at a time, detects that the client leaves.
// While an exchange runs the socket still reads a little ahead, because one that is not read does not report that its
// peer is gone.
import type { Socket } from 'node:net';
import { describeBug } from '../../base/log.ts';
import { isHeadError } from '../../http1/head-error.ts';
import { type HeadLimits, type RequestHead, parseRequestHead } from '../../http1/head-parser.ts';
import { type ConnectionScope, type ProxyContext, nextConnectionId } from '../context.ts';
import { PooledConnectionSource } from '../gate/connection-source.ts';
import { IdleWatch } from '../idle-watch.ts';
import { HeadBuffer } from '../../http1/head-buffer.ts';
import { LeftSignal } from './left-signal.ts';
import { LINGER_MS, MAX_AHEAD_BYTES, requestHeadLimits, responseHeadLimits } from '../limits.ts';
import { type ExchangeRecord, type Outcome } from '../record.ts';
import { type Refusal, refusalBytes, refuse } from '../refusal.ts';
import { refusalOfHead } from '../gate/request-plan.ts';

/** An exchange or a tunnel: gets the events of the socket while it runs. */
export type RunningExchange = {
  onClientBytes(chunk: Buffer): void;
  onClientDrain(): void;
  onClientIdle(): void;
  onClientClosed(): void;
  /** One of its other callbacks threw. */
  onBug(error: unknown): void;
};

/** Starts an exchange or a tunnel for `head`; `rest` came behind it. */
export type StartExchange = (connection: ClientConnection, head: RequestHead, rest: Buffer) => void;

type RefusalDetails = { method?: string; authority?: string; revision?: number; keepAlive?: boolean };

const NO_BYTES = Buffer.alloc(0);

export class ClientConnection {
  readonly id: number;
  readonly socket: Socket;
  /** Only `admit` replaces it. */
  scope!: ConnectionScope;
  /** How many heads were parsed on this connection. */
  exchanges = 0;
  /** A record other than an exchange's was emitted (a refusal, for example). */
  hasRecord = false;
  splicedTo: Socket | undefined;
  #isAdmitted = false;
  /** Where its requests get their upstream connections. */
  readonly source: PooledConnectionSource = new PooledConnectionSource(this);
  responseLimits!: HeadLimits;
  #requestLimits!: HeadLimits;
  readonly #start: StartExchange;
  readonly #dataListener = (chunk: Buffer): void => this.#onData(chunk);
  #running: RunningExchange | undefined;
  readonly #input: HeadBuffer;
  readonly #idle: IdleWatch;
  readonly #left: LeftSignal = new LeftSignal();
  #headTimer: NodeJS.Timeout | undefined;
  #ending: Promise<unknown> | undefined;
  #isEnding = false;
  #isDetached = false;
  #hasOverflowed = false;

  constructor(socket: Socket, scope: ConnectionScope, start: StartExchange) {
    this.id = nextConnectionId();
    this.socket = socket;
    this.#start = start;
    this.#input = new HeadBuffer(scope.context.limits.maxRequestHeadBytes);
    socket
      .on('data', this.#dataListener)
      .on('drain', () => this.#onDrain())
      .on('end', () => this.#onEnd())
      .on('error', () => this.#onClosed())
      .on('close', () => this.#onSocketClosed());
    this.#enter(scope);
    this.#idle = new IdleWatch([socket], scope.context.timeouts.clientIdleMs, () => this.#onIdle());
  }

  get closed(): Promise<void> {
    return this.#left.promise;
  }

  /**
   * Assigns the connection to the sandbox of its client. False if it belongs to another one already: a connection belongs
   * to one sandbox, so that no state of it can serve two.
   */
  admit(context: ProxyContext): boolean {
    if (this.#isAdmitted) return context === this.scope.context;
    this.#isAdmitted = true;
    this.scope.context.connections.delete(this);
    this.#enter({ ...this.scope, context });
    return true;
  }

  #enter(scope: ConnectionScope): void {
    this.scope = scope;
    this.#requestLimits = requestHeadLimits(scope.context.limits);
    this.responseLimits = responseHeadLimits(scope.context.limits);
    scope.context.connections.add(this);
    // Inside a tunnel the client is counted already, with the socket of the tunnel.
    if (this.#isAdmitted && !scope.tunnel) scope.context.clients.add(this.socket);
  }

  #leave(): void {
    this.scope.context.connections.delete(this);
    this.scope.context.clients.delete(this.socket);
    this.#left.settle();
  }

  /** True while no exchange runs and no byte of a head has come: the connection may be closed at any time. */
  get isIdle(): boolean {
    return !this.#running && this.#input.length === 0 && !this.#isDetached;
  }

  /** Passes the events of the socket to `exchange` until `finishExchange`. */
  run(exchange: RunningExchange): void {
    this.#running = exchange;
  }

  /** Buffers bytes behind the body of the running exchange: the next request, sent early. */
  bufferAhead(chunk: Buffer): void {
    if (chunk.length === 0 || this.#hasOverflowed) return;
    if (this.#input.length + chunk.length > MAX_AHEAD_BYTES) {
      // Too far ahead: all of it is dropped, and the connection is closed after the running exchange.
      this.#hasOverflowed = true;
      this.#input.take();
      return;
    }
    this.#input.push(chunk);
  }

  /** Bytes of the client were dropped, so what it sends from here on cannot be parsed. */
  get hasOverflowed(): boolean {
    return this.#hasOverflowed;
  }

  get mustEnd(): boolean {
    return this.#hasOverflowed || this.scope.context.isDraining();
  }

  /** The running exchange has ended: reads the next request, or closes the connection. */
  finishExchange(keepAlive: boolean): void {
    this.#running = undefined;
    if (!keepAlive || this.mustEnd) return this.end();
    // Paused for an upstream that has responded without reading the end of the body.
    if (this.socket.isPaused()) this.socket.resume();
    // One turn of the event loop later. Bytes that the upstream sent behind the end of its response (one read, several TLS
    // records) are seen first and close its connection; otherwise they would be the response to the request that waits
    // here (a poisoned queue).
    if (this.#input.length > 0) setImmediate(() => this.#readNext());
  }

  /** Closes an idle connection; a running exchange closes it when it ends, because of `mustEnd`. */
  drain(): void {
    if (this.isIdle) this.end();
  }

  /** Sends our FIN, then waits a moment for the client's, so that a reset does not destroy our last response. */
  end(): void {
    if (this.#isEnding || this.#isDetached) return;
    this.#isEnding = true;
    this.#input.take();
    clearTimeout(this.#headTimer);
    const { socket } = this;
    socket.end(() => {
      if (socket.readableEnded) socket.destroy();
      else setTimeout(() => socket.destroy(), LINGER_MS).unref();
    });
    socket.resume();
  }

  /** Hands the socket over, whose events are ignored from here on, except its close. Returns the bytes that were read ahead. */
  detach(): Buffer | undefined {
    this.#isDetached = true;
    this.#running = undefined;
    clearTimeout(this.#headTimer);
    this.#idle.stop();
    this.socket.pause();
    this.socket.off('data', this.#dataListener);
    return this.#input.take();
  }

  /** Its socket is spliced to `upstream`. `closed` waits for `ending`, which emits the last record. */
  setSpliced(ending: Promise<unknown>, upstream: Socket): void {
    this.#ending = ending;
    this.splicedTo = upstream;
  }

  /** Sends and records a refusal outside of an exchange; the revision is that of the policy in force, unless given. */
  refuse(refusal: Refusal, details: RefusalDetails = {}): void {
    const { keepAlive = false, ...about } = details;
    const bytes = refusalBytes(refusal, { method: about.method ?? 'GET', close: !keepAlive });
    this.record({
      ...about,
      outcome: 'refused',
      reason: refusal.refused,
      cause: refusal.cause,
      status: refusal.status,
      bytes_down: bytes.length,
    });
    this.socket.write(bytes);
    this.finishExchange(keepAlive);
  }

  /** Emits a record that is not an exchange's. */
  record(
    fields: Partial<ExchangeRecord> & { outcome: Outcome },
    startedMs: number = performance.now(),
  ): void {
    this.hasRecord = true;
    const { context, scheme, clientAddress, tunnel } = this.scope;
    const base = {
      sandbox: context.sandbox,
      revision: context.policy().revision,
      client: clientAddress,
      scheme,
      ...(tunnel ? { authority: tunnel.text } : {}),
    };
    context.recorder.emit({ ...base, bytes_up: 0, bytes_down: 0, ...fields }, startedMs);
  }

  #onData(chunk: Buffer): void {
    if (this.#isEnding) return;
    if (this.#running) return this.#dispatch(chunk);
    // The next head waits until our last response is written: a client that does not read cannot cause more work.
    if (this.socket.writableNeedDrain) return this.bufferAhead(chunk);
    this.#input.push(chunk);
    this.#readHead();
  }

  #readNext(): void {
    if (!this.#running && !this.socket.writableNeedDrain) this.#readHead();
  }

  #readHead(): void {
    if (this.#input.length === 0 || this.#isEnding) return;
    const { timeouts } = this.scope.context;
    const input = this.#input.takeForParsing();
    const head = input && parseRequestHead(input, 0, this.#requestLimits);
    if (head === undefined) {
      this.#headTimer ??= setTimeout(() => this.#onHeadTimeout(), timeouts.headMs);
      return;
    }
    clearTimeout(this.#headTimer);
    this.#headTimer = undefined;
    this.#input.take();
    if (isHeadError(head)) return this.refuse(refusalOfHead(head, input?.[0], this.scope.tunnel));
    this.exchanges += 1;
    this.#dispatch(head.end === head.bytes.length ? NO_BYTES : head.bytes.subarray(head.end), head);
  }

  /** `bytes` of a body, or those behind `head`. A bug becomes a 500: the process goes on, and the client gets a response. */
  #dispatch(bytes: Buffer, head?: RequestHead): void {
    try {
      if (head) this.#start(this, head, bytes);
      else this.#running?.onClientBytes(bytes);
    } catch (error) {
      this.scope.context.log.error(describeBug(error), 'connection failed');
      if (this.#isDetached) this.socket.destroy();
      else if (this.#running) this.#running.onBug(error);
      else this.refuse(refuse('internal_error'));
    }
  }

  #onHeadTimeout(): void {
    if (!this.#running && !this.#isEnding) this.refuse(refuse('request_timeout', 'head'));
  }

  #onDrain(): void {
    if (this.#running) this.#running.onClientDrain();
    else if (this.#hasOverflowed) this.end();
    else this.#readNext();
  }

  #onIdle(): void {
    if (this.#running) return this.#running.onClientIdle();
    this.socket.destroy();
  }

  /** A FIN while a response is due is an abort. After the last response the client has only finished. */
  #onEnd(): void {
    if (this.#running) return this.#onClosed();
    if (!this.#isEnding) this.end();
    else if (this.socket.writableFinished) this.socket.destroy();
  }

  #onSocketClosed(): void {
    this.#onClosed();
    if (this.#ending) void this.#ending.then(() => this.#leave());
    else this.#leave();
  }

  #onClosed(): void {
    if (this.#isDetached) return;
    clearTimeout(this.#headTimer);
    const running = this.#running;
    this.#running = undefined;
    running?.onClientClosed();
    if (!this.socket.destroyed) this.socket.destroy();
    this.#idle.stop();
  }
}
