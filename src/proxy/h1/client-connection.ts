// One client's HTTP/1.1 connection: cuts it into heads, runs one exchange at a time, sees the client leave.
// While an exchange runs the socket keeps reading, a little ahead, because a socket that does not read never
// learns that its peer is gone.
import type { Socket } from 'node:net';
import { describeBug } from '../../base/log.ts';
import { isHeadError } from '../../http1/head-error.ts';
import { type RequestHead, parseRequestHead } from '../../http1/head-parser.ts';
import { type ConnectionScope, type ProxyContext, nextConnectionId } from '../context.ts';
import { HeadBuffer } from './head-buffer.ts';
import { LINGER_MS, MAX_AHEAD_BYTES, requestHeadLimits } from '../limits.ts';
import { type ExchangeRecord, type Outcome } from '../record.ts';
import { type Refusal, refusalBytes, refuse } from '../refusal.ts';
import { refusalOfError } from '../gate/request-plan.ts';

/** What runs between two heads. */
export type RunningExchange = {
  onClientBytes(chunk: Buffer): void;
  onClientDrain(): void;
  onClientIdle(): void;
  onClientGone(): void;
  /** Something that it was told made it throw. */
  onBug(error: unknown): void;
};

/** Starts what a head asks for; `rest` came behind it. */
export type StartExchange = (connection: ClientConnection, head: RequestHead, rest: Buffer) => void;
const NO_BYTES: Buffer = Buffer.alloc(0);
type RefusalDetails = { method?: string; authority?: string; revision?: number; keepAlive?: boolean };
export class ClientConnection {
  readonly id: number;
  readonly socket: Socket;
  readonly gone: Promise<void>;
  /** Set by `admit` alone. */
  scope!: ConnectionScope;
  /** Exchanges begun on this connection. */
  exchanges = 0;
  /** Something on it has a record that is no exchange's. */
  hasRecord = false;
  splicedTo: Socket | undefined;
  #isAdmitted = false;
  readonly #start: StartExchange;
  readonly #listeners: [event: string, listener: (...args: never[]) => void][];
  #running: RunningExchange | undefined;
  readonly #input: HeadBuffer;
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
    this.#listeners = [
      ['data', (chunk: Buffer) => this.#onData(chunk)],
      ['drain', () => this.#onDrain()],
      ['end', () => this.#onEnd()],
      ['error', () => this.#onGone()],
      ['close', () => this.#onGone()],
      ['timeout', () => this.#onIdle()],
    ];
    for (const [event, listener] of this.#listeners)
      socket.on(event, listener as (...args: unknown[]) => void);
    this.#join(scope);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.gone = promise;
    socket.once('close', () => {
      void Promise.resolve(this.#ending).then(() => {
        this.#leave();
        resolve();
      });
    });
    socket.setTimeout(scope.context.timeouts.clientIdleMs);
    socket.setNoDelay(true);
  }

  /**
   * The sandbox that its client speaks for from here on. False: it has spoken for another before. One connection
   * belongs to one sandbox, so that nothing it holds can serve two.
   */
  admit(context: ProxyContext): boolean {
    if (this.#isAdmitted) return context === this.scope.context;
    this.#isAdmitted = true;
    this.#leave();
    this.#join({ ...this.scope, context });
    return true;
  }

  #join(scope: ConnectionScope): void {
    this.scope = scope;
    scope.context.connections.add(this);
    // Inside a tunnel the socket is the tunnel's own client once more.
    if (this.#isAdmitted && !scope.tunnel) scope.context.clients.add(this.socket);
  }

  #leave(): void {
    const { context } = this.scope;
    context.connections.delete(this);
    context.clients.delete(this.socket);
  }

  /** True while no exchange runs and no part of a head has come: may be closed at any time. */
  get isIdle(): boolean {
    return !this.#running && this.#input.length === 0 && !this.#isDetached;
  }

  /** The exchange that gets the socket's events until `next`. */
  run(exchange: RunningExchange): void {
    this.#running = exchange;
  }

  /** Bytes behind the running exchange's body: the next request, sent early. */
  bufferAhead(chunk: Buffer): void {
    if (chunk.length === 0 || this.#hasOverflowed) return;
    if (this.#input.length + chunk.length > MAX_AHEAD_BYTES) {
      // Too far ahead: nothing of it will be answered, and the connection ends after the running exchange.
      this.#hasOverflowed = true;
      this.#input.take();
      return;
    }
    this.#input.push(chunk);
  }

  /** Bytes of the client were thrown away: what it says from here on cannot be read. */
  get hasOverflowed(): boolean {
    return this.#hasOverflowed;
  }

  get mustEnd(): boolean {
    return this.#hasOverflowed || this.scope.context.isDraining();
  }

  /** The running exchange is over; its connection goes on or ends. */
  finishExchange(keepAlive: boolean): void {
    this.#running = undefined;
    if (!keepAlive || this.mustEnd) return this.end();
    // Held for a host that has answered without taking the last of the body.
    if (this.socket.isPaused()) this.socket.resume();
    // A turn later: what the host sent together with the end of its answer (one read, several TLS records) is seen
    // first and ends its connection; else it would answer the request that waits here (a poisoned queue).
    if (this.#input.length > 0) setImmediate(() => this.#readNext());
  }

  /** What is under way ends it, as `mustEnd` says. */
  drain(): void {
    if (this.isIdle) this.end();
  }

  /** Ends our side, then waits a moment for the client's, so that a reset does not destroy our last answer. */
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

  /** Hands the socket over: no listener of this connection remains. Answers the bytes that were read ahead. */
  detach(): Buffer | undefined {
    this.#isDetached = true;
    clearTimeout(this.#headTimer);
    this.socket.pause();
    for (const [event, listener] of this.#listeners)
      this.socket.off(event, listener as (...args: unknown[]) => void);
    return this.#input.take();
  }

  /** Not gone before `ending` either: what joined its socket to `host` still has a record to write. */
  setSpliced(ending: Promise<unknown>, host: Socket): void {
    this.#ending = ending;
    this.splicedTo = host;
  }

  /** Answers a refusal outside of any exchange and leaves its record: of the rules in force, unless it says which. */
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

  /** Emits a record for something on this connection that is no exchange. */
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
    if (this.#running) return this.#passOn(chunk);
    // Waits for our last answer to leave before it reads on: a client that does not read gets no more work done.
    if (this.socket.writableNeedDrain) return this.bufferAhead(chunk);
    this.#input.push(chunk);
    this.#readHead();
  }

  #readNext(): void {
    if (!this.#running && !this.socket.writableNeedDrain) this.#readHead();
  }

  #readHead(): void {
    if (this.#input.length === 0 || this.#isEnding) return;
    const { limits, timeouts } = this.scope.context;
    const input = this.#input.unparsed();
    const head = input && parseRequestHead(input, 0, requestHeadLimits(limits));
    if (head === undefined) {
      this.#headTimer ??= setTimeout(() => this.#onHeadTimeout(), timeouts.headMs);
      return;
    }
    clearTimeout(this.#headTimer);
    this.#headTimer = undefined;
    this.#input.take();
    if (isHeadError(head)) return this.refuse(refusalOfError(head));
    this.exchanges += 1;
    this.#passOn(head.end === head.bytes.length ? NO_BYTES : head.bytes.subarray(head.end), head);
  }

  /** Of the body, or behind `head`. A bug gets a response: it neither ends the process nor leaves the client waiting. */
  #passOn(bytes: Buffer, head?: RequestHead): void {
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

  /** A FIN while an answer is due is an abort; after the last answer it is a client that is done. */
  #onEnd(): void {
    if (this.#running) return this.#onGone();
    if (!this.#isEnding) this.end();
    else if (this.socket.writableFinished) this.socket.destroy();
  }

  #onGone(): void {
    clearTimeout(this.#headTimer);
    const running = this.#running;
    this.#running = undefined;
    running?.onClientGone();
    if (!this.socket.destroyed) this.socket.destroy();
  }
}
