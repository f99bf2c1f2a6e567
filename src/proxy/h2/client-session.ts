// One HTTP/2 connection of a client inside an intercepted tunnel: its session, its streams and their limits. Each stream
// is handled by an exchange of its own. A client that only makes work loses its own connection.
import {
  type ServerHttp2Session,
  type ServerHttp2Stream,
  constants,
  performServerHandshake,
} from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { describeBug } from '../../base/log.ts';
import type { Authority } from '../../policy/authority/authority.ts';
import { type ConnectionScope, type OpenConnection, nextConnectionId } from '../context.ts';
import { clientEndReason } from '../gate/exchange-record.ts';
import { FloodGauge } from './flood-gauge.ts';
import { parseRequestList } from './header-block.ts';
import type { HeaderList } from '../upstream/h2-session.ts';
import { LINGER_MS, requestHeadLimits } from '../limits.ts';
import type { ExchangeRecord, Outcome } from '../record.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import { planRequest } from '../gate/request-plan.ts';
import { type Watched, unwatch, watch } from './session-watch.ts';
import { sendRefusal } from './stream-response.ts';
import { MAX_REFUSED_STREAMS, RESET_BURST_FACTOR, sessionOptions } from './session-options.ts';
import { StreamCode } from './stream-code.ts';
import { StreamSource } from './stream-lease.ts';
import { type StreamClient, StreamExchange } from './stream-exchange.ts';

export type SessionScope = ConnectionScope & {
  readonly tunnel: Authority;
  /** The client can be sent to an HTTP/1.1 connection. */
  readonly speaksHttp1: boolean;
};

/** Only methods that are tokens of at most 32 bytes are recorded: a client may send anything. */
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/;

export class ClientSession implements OpenConnection, StreamClient, Watched {
  readonly id: number = nextConnectionId();
  readonly socket: TLSSocket;
  readonly scope: SessionScope;
  readonly closed: Promise<void>;
  readonly gauge: FloodGauge;
  readonly source: StreamSource;
  /** Exchanges started on this connection. */
  exchanges = 0;
  hasRecord = false;
  readonly #session: ServerHttp2Session;
  /** Open streams, with the exchange of those that were not refused. */
  readonly #streams: Map<ServerHttp2Stream, StreamExchange | undefined> = new Map();
  /** The tick that last saw new bytes or the end of a stream. */
  #activeMs: number = performance.now();
  #isActive = false;
  #unreported = 0;
  #seenBytes = 0;
  /** Stream ids that the client skipped before its first request. */
  #skipped = 0;
  #isEnding = false;
  #isLeaving = false;
  #hasClientEnded = false;
  #hasBreach = false;
  #flood: string | undefined;

  /** `socket` has just completed its handshake, in which h2 was chosen. */
  constructor(socket: TLSSocket, scope: SessionScope) {
    this.socket = socket;
    this.scope = scope;
    const { limits, connections } = scope.context;
    // Outside of tls.Server nothing else reports the secure connection, and the session would wait for it for ever.
    Object.assign(socket, { secureConnecting: false });
    const session = performServerHandshake(socket, sessionOptions(limits));
    this.#session = session;
    this.source = new StreamSource(this);
    this.gauge = new FloodGauge(
      () => socket.bytesRead,
      (flood) => this.#onFlood(flood),
      RESET_BURST_FACTOR * limits.maxStreams,
    );
    session.on('stream', (stream, _, flags, raw) => this.#onStream(stream, flags, raw));
    session.on('ping', () => this.gauge.onPing());
    session.on('remoteSettings', () => this.gauge.onSettings());
    session.on('error', (error: NodeJS.ErrnoException) => this.#onError(error));
    session.on('goaway', () => {
      this.#hasClientEnded = true;
    });
    // The socket allows half-open connections: a FIN means that the client leaves.
    socket.once('end', () => socket.destroy());
    connections.add(this);
    watch(this);
    this.closed = this.#whenClosed();
  }

  get isIdle(): boolean {
    return this.#streams.size === 0;
  }

  /** Lets running streams end and refuses new ones (GOAWAY). */
  end(): void {
    this.#isEnding = true;
    // One turn later: node:http2 cannot end a session in the turn in which it took over a socket with buffered bytes.
    setImmediate(() => this.#session.close());
  }

  drain(): void {
    this.end();
  }

  tick(): void {
    this.gauge.tick();
    const nowMs = performance.now();
    const { bytesRead } = this.socket;
    if (this.#isActive || bytesRead !== this.#seenBytes) this.#activeMs = nowMs;
    else this.#endIfIdle(nowMs);
    // Most sessions are idle most of the time.
    if (bytesRead !== this.#seenBytes) this.#recordUnheard();
    this.#isActive = false;
    this.#seenBytes = bytesRead;
    for (const exchange of this.#streams.values()) exchange?.tick(nowMs);
    const { destroyed, closed } = this.#session;
    if (this.#isLeaving || !(destroyed || (closed && this.isIdle))) return;
    this.#isLeaving = true;
    // node:http2 emits no event for this: it saw a protocol error.
    if (destroyed && !this.#isEnding && !this.#hasClientEnded && !this.socket.destroyed)
      this.#onBreach('session');
    // node:http2 waits without a limit for a client that neither reads nor leaves.
    setTimeout(() => this.socket.destroy(), LINGER_MS).unref();
  }

  giveUp(): void {
    this.socket.destroy();
  }

  turnAway(): boolean {
    const { context, tunnel, speaksHttp1 } = this.scope;
    context.hints.forget(tunnel);
    if (speaksHttp1) this.end();
    return speaksHttp1;
  }

  async #whenClosed(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.socket.once('close', resolve);
    await promise;
    unwatch(this);
    // The streams close in the next turns, each with its record.
    await Promise.all([...this.#streams.keys()].map((stream) => closing(stream)));
    this.scope.context.connections.delete(this);
  }

  #onStream(stream: ServerHttp2Stream, flags: number, raw: HeaderList): void {
    const hasBody = (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0;
    // A client need not begin with stream 1, and skipped ids are not evidence of requests (RFC 9113 §5.1.1).
    if (this.exchanges === 0) this.#skipped = ((stream.id ?? 1) - 1) / 2 - this.#unreported;
    this.exchanges += 1;
    this.gauge.onRequest(hasBody);
    this.#streams.set(stream, undefined);
    stream.on('error', ignoreError);
    stream.on('close', () => this.#onStreamClose(stream, hasBody));
    // An unread end would keep the stream in node:http2's table after its response, and new streams would be refused.
    if (!hasBody) stream.resume();
    try {
      this.#start(stream, raw, hasBody);
    } catch (error) {
      this.scope.context.log.error(describeBug(error), 'stream failed');
      // The error may come from sending a response: a second response would throw where nothing catches it.
      if (stream.headersSent) stream.close(StreamCode.internalError);
      else this.#refuse(stream, refuse('internal_error'), raw);
    }
  }

  #start(stream: ServerHttp2Stream, raw: HeaderList, hasBody: boolean): void {
    const { context, tunnel } = this.scope;
    if (context.recorder.isBlocked) return this.#refuse(stream, refuse('record_sink_blocked'), raw);
    const block = parseRequestList(raw, requestHeadLimits(context.limits));
    if (isRefusal(block)) return this.#refuse(stream, block, raw);
    const plan = planRequest(block.head, tunnel, 'https');
    if (isRefusal(plan)) return this.#refuse(stream, plan, raw);
    const exchange = new StreamExchange(this, stream, { plan, fields: block.fields, hasBody });
    this.#streams.set(stream, exchange);
    exchange.start();
  }

  #onStreamClose(stream: ServerHttp2Stream, hasBody: boolean): void {
    const exchange = this.#streams.get(stream);
    this.#streams.delete(stream);
    this.#isActive = true;
    this.gauge.onRequestEnd(hasBody);
    if (exchange) exchange.onClientClose();
    else if (stream.rstCode !== StreamCode.noError) this.gauge.onReset();
  }

  #refuse(stream: ServerHttp2Stream, refusal: Refusal, fields: HeaderList): void {
    const at = fields.indexOf(':method');
    const method = (at === -1 ? undefined : fields[at + 1]) ?? 'GET';
    const bytes = sendRefusal(stream, refusal, { method, fields });
    this.#record({
      method: METHOD.test(method) ? method : undefined,
      outcome: 'refused',
      reason: refusal.refused,
      cause: refusal.cause,
      status: refusal.status,
      bytes_down: bytes,
    });
    // Bytes that the client still sends are not read. One turn later: a reset overtakes a head that is still unsent.
    setImmediate(() => stream.close(StreamCode.noError));
  }

  /** Not a timeout of the session: node:http2 keeps its timer, and with it the session, after the connection has ended. */
  #endIfIdle(nowMs: number): void {
    if (!this.isIdle || this.#isEnding) return;
    const idleMs = nowMs - this.#activeMs;
    if (idleMs >= this.scope.context.timeouts.clientIdleMs) this.end();
  }

  /** Why a stream of this connection ended early. */
  get clientEndReason(): string {
    return this.#flood === undefined ? clientEndReason(this) : 'client_flood';
  }

  /** Counts streams that node:http2 reset by itself: a header list that is too long or has an invalid field. */
  #recordUnheard(): void {
    const { lastProcStreamID } = this.#session.state;
    if (lastProcStreamID === undefined) return;
    const unreported = Math.ceil(lastProcStreamID / 2) - this.#skipped - this.exchanges - this.#unreported;
    if (unreported <= 0) return;
    this.#unreported += unreported;
    this.#record({
      outcome: 'refused',
      reason: 'malformed_request',
      cause: `http2_layer: ${Math.min(unreported, MAX_REFUSED_STREAMS)}`,
    });
  }

  #onFlood(flood: string): void {
    this.#flood = flood;
    this.#isEnding = true;
    this.#record({ method: 'CONNECT', outcome: 'failed', reason: 'client_flood', cause: flood });
    // With `undefined` node:http2 would send its own default code, NO_ERROR.
    const noError = null as unknown as undefined;
    // At once: in a later turn megabytes that arrived meanwhile would be read first.
    process.nextTick(() => this.#session.destroy(noError, StreamCode.enhanceYourCalm));
  }

  #onError(error: NodeJS.ErrnoException & { readonly errno?: number }): void {
    // A failed socket and a GOAWAY of any code both mean that the client left.
    if (!this.#hasClientEnded && error.code?.startsWith('ERR_HTTP2_')) this.#onBreach(error.code);
  }

  #onBreach(cause: string): void {
    if (this.#hasBreach) return;
    this.#hasBreach = true;
    this.#isEnding = true;
    this.#record({ method: 'CONNECT', outcome: 'failed', reason: 'client_protocol_error', cause });
  }

  #record(fields: Partial<ExchangeRecord> & { outcome: Outcome }): void {
    this.hasRecord = true;
    const { context, clientAddress, tunnel } = this.scope;
    const base: ExchangeRecord = {
      sandbox: context.sandbox,
      revision: context.policy().revision,
      client: clientAddress,
      scheme: 'https',
      protocol: 'h2',
      authority: tunnel.text,
      bytes_up: 0,
      bytes_down: 0,
    };
    context.recorder.emit({ ...base, ...fields }, performance.now());
  }
}

function closing(stream: ServerHttp2Stream): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  stream.once('close', resolve);
  if (stream.closed && stream.destroyed) setImmediate(resolve);
  return promise;
}

// 'close' follows and is handled.
function ignoreError(): void {}
