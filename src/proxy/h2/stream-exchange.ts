// One request and its response over HTTP/2: a stream of the client, joined to a stream of the upstream. Gate, records,
// refusals and masking are those of HTTP/1.1. Different are: each direction ends by itself, resets have a code, which is
// passed on, and the upstream can declare a request unprocessed.
import type { ClientHttp2Stream, ServerHttp2Stream } from 'node:http2';
import { addAbortSignal } from 'node:stream';
import { describeBug } from '../../base/log.ts';
import type { ResponseHead } from '../../http1/head-parser.ts';
import { UpstreamAcquisition, type AcquisitionCallbacks } from '../gate/acquisition.ts';
import type { ConnectionScope } from '../context.ts';
import { bindsConnection } from '../gate/connection-auth.ts';
import type { FloodGauge } from './flood-gauge.ts';
import { outgoingRequestList } from './header-block.ts';
import type { HeaderList } from '../upstream/h2-session.ts';
import type { GateDecision } from '../gate/inject.ts';
import { responseHeadLimits } from '../limits.ts';
import type { Outcome } from '../record.ts';
import { type Refusal, refuse } from '../refusal.ts';
import type { RequestPlan } from '../gate/request-plan.ts';
import { sendRefusal, resetStream } from './stream-response.ts';
import { type BodyOwner, StreamBody } from './stream-body.ts';
import { StreamCode, streamCodeName } from './stream-code.ts';
import { IdleLimit } from './idle-limit.ts';
import type { StreamSource } from './stream-lease.ts';
import { type RelayOwner, StreamRelay } from './stream-relay.ts';
import type { StreamSlot } from '../upstream/h2-session.ts';

/** How often a request that the upstream declared unprocessed is retried. */
const MAX_RETRIES = 3;
const LEFT_TO_END_MS = 1_000;

/** The client connection of a stream. */
export type StreamClient = {
  readonly id: number;
  readonly scope: ConnectionScope;
  readonly gauge: FloodGauge;
  readonly source: StreamSource;
  readonly clientEndReason: string;
  /** Sends the client to another connection with HTTP/1.1; false if it supports HTTP/2 only. */
  turnAway(): boolean;
  /** Destroys the connection. */
  giveUp(): void;
};

export type StreamRequest = {
  readonly plan: RequestPlan;
  /** The texts of the plan's fields. */
  readonly fields: HeaderList;
  readonly hasBody: boolean;
};

/** Starts with `start`; ends with the client's stream. */
export class StreamExchange implements AcquisitionCallbacks<StreamSlot>, BodyOwner, RelayOwner {
  readonly #client: StreamClient;
  readonly #stream: ServerHttp2Stream;
  readonly #plan: RequestPlan;
  readonly #fields: HeaderList;
  readonly #acquisition: UpstreamAcquisition<StreamSlot>;
  readonly #body: StreamBody | undefined;
  readonly #relay: StreamRelay;
  readonly #startedMs: number = performance.now();
  #place: StreamSlot | undefined;
  #upstream: ClientHttp2Stream | undefined;
  #idleLimit: IdleLimit | undefined;
  #retries = 0;
  #hasEnded = false;
  #isRefused = false;

  constructor(client: StreamClient, stream: ServerHttp2Stream, request: StreamRequest) {
    const { plan, fields, hasBody } = request;
    this.#client = client;
    this.#stream = stream;
    this.#plan = plan;
    this.#fields = fields;
    this.#body = hasBody ? new StreamBody(stream, this) : undefined;
    const { timeouts } = client.scope.context;
    const limits = responseHeadLimits(client.scope.context.limits);
    this.#relay = new StreamRelay(
      stream,
      { plan, hasBody, limits, clientIdleMs: timeouts.clientIdleMs },
      this,
    );
    this.#acquisition = new UpstreamAcquisition(client.scope, plan, client.source, this);
  }

  start(): void {
    this.#guard(() => this.#acquisition.start());
  }

  /** Checks the idle limits; the ticks of the client's session call it. */
  tick(nowMs: number): void {
    if (this.#hasEnded) return;
    this.#guard(() => {
      this.#relay.tick(nowMs);
      if (this.#idleLimit?.hasPassed(nowMs) === true) this.#onIdle();
    });
  }

  /** If not even the reset can be sent, the client does not read the whole connection. */
  onStall(): void {
    const { clientIdleMs } = this.#client.scope.context.timeouts;
    this.#fail('client_stalled', StreamCode.cancel);
    const giveUp = (): void => {
      if (!this.#stream.destroyed) this.#client.giveUp();
    };
    setTimeout(giveUp, clientIdleMs).unref();
  }

  onReady(place: StreamSlot, passage: GateDecision): void {
    const { injection, bodyMask } = passage;
    const { record } = this.#acquisition;
    this.#place = place;
    record.upstream_reused = place.isReused;
    if (injection) record.injected = injection.names;
    if (injection?.isBinding) place.session.isPrivate = true;
    const list = outgoingRequestList(this.#plan, this.#fields, injection, bodyMask !== undefined);
    const upstream = place.session.request(list, { endStream: !this.#body });
    this.#upstream = upstream;
    upstream.on('error', ignoreError);
    upstream.on('close', () => {
      place.session.forget(upstream);
      this.#guard(() => this.#onUpstreamClose(upstream, place));
    });
    this.#idleLimit = new IdleLimit(this.#client.scope.context.timeouts.responseIdleMs);
    this.#relay.follow(upstream, place.session, passage);
    this.#body?.sendTo(upstream);
  }

  onHead(head: ResponseHead): void {
    if (this.#place && bindsConnection(head)) this.#place.session.isPrivate = true;
    this.#acquisition.record.status = head.status;
    this.#body?.dropRetryBuffer();
  }

  onLife(): void {
    this.#idleLimit?.refresh();
  }

  onPiece(bytes: number): void {
    this.#idleLimit?.refresh();
    this.#client.gauge.onResponse(bytes);
  }

  onBody(bytes: number): void {
    this.#idleLimit?.refresh();
    this.#client.gauge.onBody(bytes);
  }

  onTruncated(): void {
    this.#fail('upstream_truncated', StreamCode.internalError);
  }

  #onUpstreamClose(upstream: ClientHttp2Stream, place: StreamSlot): void {
    const isLost = !place.session.isOpen && place.session.http2.destroyed;
    const isUnread = upstream.rstCode === StreamCode.refusedStream || place.session.hasSkipped(upstream.id);
    place.discard();
    if (this.#hasEnded || upstream !== this.#upstream) return;
    this.#upstream = undefined;
    // The response is complete; bytes that the client still sends are not read (RFC 9113 §8.1).
    if (this.#relay.isComplete) return this.#stopClient();
    if (this.#relay.hasResponded) return this.#passReset(upstream.rstCode);
    if (this.#mayRetry(place, isLost, isUnread)) {
      this.#retries += 1;
      return this.#acquisition.retry();
    }
    if (isLost && !isUnread) this.onRefused(place.session.refuseLost());
    else this.#passReset(upstream.rstCode);
  }

  /**
   * RFC 9113 §8.7: an unprocessed request may be sent again, whatever its method. One that may have been processed is sent
   * again under the rules of HTTP/1.1 (RFC 9110 §9.2.2). One that got an interim response was processed, whatever the code says.
   */
  #mayRetry(place: StreamSlot, isLost: boolean, isUnread: boolean): boolean {
    if (this.#relay.hasOnlyInterims) return false;
    if (isUnread) return this.#retries < MAX_RETRIES && (!this.#body || this.#body.isRetryable);
    return isLost && this.#retries === 0 && place.isReused && this.#plan.isIdempotent && !this.#body;
  }

  /** A reset without an error after half a response would pass for its end. A refused request would be sent again. */
  #passReset(code: number): void {
    const isRefused = code === StreamCode.refusedStream && this.#relay.hasOnlyInterims;
    const passed = isRefused || code === StreamCode.noError ? StreamCode.internalError : code;
    this.#fail('upstream_reset', passed, streamCodeName(code));
  }

  #onIdle(): void {
    // An upstream that waits for the client because of back-pressure is not idle.
    if (this.#relay.isHeld) this.#idleLimit?.refresh();
    else if (this.#relay.hasResponded) this.#fail('upstream_idle', StreamCode.cancel);
    else this.onRefused(refuse('upstream_timeout', 'response'));
  }

  #stopClient(): void {
    if (!this.#body || this.#body.isComplete) return;
    this.#body.stop();
    this.#relay.afterEnd(() => this.#stream.close(StreamCode.noError));
  }

  onRefused(refusal: Refusal): void {
    if (this.#hasEnded) return;
    if (this.#relay.hasResponded) return this.#fail(refusal.refused, StreamCode.internalError, refusal.cause);
    // The upstream's protocol has changed since this connection was negotiated; a new connection negotiates again.
    if (refusal.refused === 'h2_unavailable' && this.#client.turnAway())
      return this.#fail('alpn_changed', StreamCode.refusedStream);
    const { record } = this.#acquisition;
    this.#isRefused = true;
    this.#relay.hasResponded = true;
    record.status = refusal.status;
    record.reason = refusal.refused;
    record.cause = refusal.cause;
    this.#relay.bytes += sendRefusal(this.#stream, refusal, {
      method: this.#plan.head.method,
      fields: this.#fields,
    });
    this.#finish(refusal.status >= 500 ? 'failed' : 'refused');
    this.#stopClient();
  }

  onBug(error: unknown): void {
    this.#client.scope.context.log.error(describeBug(error), 'exchange failed');
    this.onRefused(refuse('internal_error'));
  }

  /** The response cannot be completed: the client gets a reset. */
  #fail(reason: string, code: number, cause?: string): void {
    if (this.#hasEnded) return;
    this.#acquisition.record.reason = reason;
    this.#acquisition.record.cause = cause;
    // What has arrived with this turn precedes the reset.
    this.#relay.flush();
    this.#finish('failed');
    // Only the end of the response is unsent, because the client does not read: a reset would overtake the trailers.
    const { writableEnded, writableLength } = this.#stream;
    if (this.#relay.isEndDue && writableEnded && writableLength === 0) this.#client.giveUp();
    else resetStream(this.#stream, code);
  }

  /** The client's stream is closed. */
  onClientClose(): void {
    if (this.#isRefused && this.#stream.rstCode !== StreamCode.noError) this.#client.gauge.onReset();
    if (this.#hasEnded) return;
    // A reset by the client after the end of the response concerns the rest of its own body.
    if (this.#relay.hasSentEnd) {
      if (this.#body?.isComplete) this.#leaveToEnd();
      return this.#finish(this.#acquisition.decision?.injection ? 'injected' : 'forwarded');
    }
    if (!this.#relay.hasAllBytes) this.#client.gauge.onReset();
    this.#acquisition.record.reason = this.#client.clientEndReason;
    this.#acquisition.record.cause = streamCodeName(this.#stream.rstCode);
    this.#finish('failed');
  }

  /**
   * The end of a body that arrived after the response is still on its way upstream. The stream keeps its slot until it has
   * ended: an upstream that takes no more of it must not hold the slot for ever, and the next client must not share the session.
   */
  #leaveToEnd(): void {
    const upstream = this.#upstream;
    if (!upstream) return;
    this.#upstream = undefined;
    this.#place = undefined;
    const timer = setTimeout(cancel, LEFT_TO_END_MS, upstream).unref();
    upstream.once('close', () => clearTimeout(timer));
  }

  #finish(outcome: Outcome): void {
    this.#hasEnded = true;
    this.#idleLimit = undefined;
    this.#relay.stop();
    this.#acquisition.end();
    this.#body?.stop();
    if (this.#upstream) cancel(this.#upstream);
    else this.#place?.discard();
    const { record } = this.#acquisition;
    // Here, because each decision starts a record.
    record.protocol = 'h2';
    record.bytes_up += this.#body?.bytes ?? 0;
    record.bytes_down += this.#relay.bytes;
    if (this.#relay.scrubbed > 0) record.scrubbed = this.#relay.scrubbed;
    record.outcome = outcome;
    this.#client.scope.context.recorder.emit(record, this.#startedMs);
  }

  /** An internal error ends this stream only; the process and the other streams go on. */
  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.onBug(error);
    }
  }
}

// `close(code)` would end the body before it resets: half a request would pass for a complete one.
function cancel(upstream: ClientHttp2Stream): void {
  addAbortSignal(AbortSignal.abort(), upstream);
}

// 'close' follows and is handled.
function ignoreError(): void {}
