// One request and its answer, in the order in which they happen: plan, gate, connection, request out, answer in.
// Each step may refuse; until the gate has answered nothing leaves. Exactly one record at the end, whatever the
// end is.
import { describeBug } from '../../base/log.ts';
import type { ConnectionFields } from '../../http1/connection-fields.ts';
import type { Framing } from '../../http1/framing.ts';
import type { ResponseHead } from '../../http1/head-parser.ts';
import { type ResponseVerdict, checkResponse } from '../gate/response-check.ts';
import { UpstreamAcquisition, type AcquisitionCallbacks } from '../gate/acquisition.ts';
import type { ClientConnection, RunningExchange } from './client-connection.ts';
import type { ProxyContext } from '../context.ts';
import { cut } from '../splice.ts';
import type { GateDecision } from '../gate/inject.ts';
import { responseHeadLimits } from '../limits.ts';
import { maskResponseHead } from '../mask/mask.ts';
import { leavesUnchanged, outgoingRequestHead, outgoingResponseHead } from './outgoing-head.ts';
import type { ExchangeRecord, Outcome } from '../record.ts';
import { goneReason } from '../gate/exchange-record.ts';
import { type Refusal, isRefusal, refusalBytes, refuse } from '../refusal.ts';
import { RequestOut } from './request-out.ts';
import { type RequestPlan, refusalOfError } from '../gate/request-plan.ts';
import { ResponseOut } from './response-out.ts';
import { ResponseReader, type ResponseSink, type Taken, isWhole } from './response-reader.ts';
import { refuseUnsearchable } from '../mask/scrub.ts';
import { ScrubbedBody } from './scrubbed-body.ts';
import type { UpstreamConnection, UpstreamOwner } from '../upstream/connection-pool.ts';
import { PooledConnectionSource } from '../gate/connection-source.ts';
import { joinUpgraded } from './upgrade.ts';

/** Begins with `start`; ends by telling its connection `next`, or with it. */
export class Exchange
  implements RunningExchange, UpstreamOwner, ResponseSink, AcquisitionCallbacks<UpstreamConnection>
{
  readonly #connection: ClientConnection;
  readonly #context: ProxyContext;
  readonly #plan: RequestPlan;
  readonly #startedMs: number = performance.now();
  readonly #request: RequestOut;
  readonly #response: ResponseOut;
  readonly #acquisition: UpstreamAcquisition<UpstreamConnection>;
  #upstream: UpstreamConnection | undefined;
  #reader: ResponseReader;
  #scrubbed: ScrubbedBody | undefined;
  #hasRetried = false;
  /** Set with the final head: from there on nothing can be refused, only cut. */
  #verdict: Exclude<ResponseVerdict, Refusal> | undefined;
  #isOver = false;

  constructor(connection: ClientConnection, plan: RequestPlan) {
    this.#connection = connection;
    this.#context = connection.scope.context;
    this.#plan = plan;
    this.#request = new RequestOut(plan, connection.socket);
    this.#response = new ResponseOut(connection.socket);
    this.#reader = new ResponseReader(plan.head.method, responseHeadLimits(this.#context.limits), this);
    this.#acquisition = new UpstreamAcquisition(
      connection.scope,
      plan,
      new PooledConnectionSource(connection, plan),
      this,
    );
  }

  start(rest: Buffer): void {
    this.#connection.run(this);
    if (rest.length > 0) this.onClientBytes(rest);
    if (!this.#isOver) this.#acquisition.start();
  }

  get #record(): ExchangeRecord {
    return this.#acquisition.record;
  }

  get #decision(): GateDecision | undefined {
    return this.#acquisition.decision;
  }

  onReady(upstream: UpstreamConnection, { injection, bodyMask }: GateDecision): void {
    this.#upstream = upstream;
    this.#record.upstream_reused = upstream.uses > 0;
    upstream.own(this, this.#connection.id);
    if (injection) this.#record.injected = injection.names;
    const head = outgoingRequestHead(this.#plan, injection, bodyMask !== undefined);
    this.#request.send(head, upstream.socket, this.#context.timeouts.continueMs);
  }

  onClientBytes(chunk: Buffer): void {
    const taken = this.#request.push(chunk);
    const { error } = this.#request;
    // Half a body has perhaps left: the refusal ends the host's connection before it can pass for a whole request.
    if (error) return this.onRefused(refusalOfError(error));
    if (taken < chunk.length) this.#connection.bufferAhead(chunk.subarray(taken));
  }

  onClientDrain(): void {
    this.#upstream?.socket.resume();
  }

  onClientIdle(): void {
    // A client that we make wait for its host is not idle: the host's own limit ends that.
    if (this.#connection.socket.isPaused()) return;
    if (!this.#request.isComplete && !this.#verdict) return this.onRefused(refuse('request_timeout', 'body'));
    // An answer that the client does not read; one that is not due yet has its own limit.
    if (this.#connection.socket.writableLength > 0) this.#fail('client_stalled');
  }

  onClientGone(): void {
    this.#fail(goneReason(this.#connection));
  }

  onUpstreamData(chunk: Buffer): void {
    this.#reader.push(chunk);
    this.#response.flush();
    if (this.#connection.socket.writableNeedDrain) this.#upstream?.socket.pause();
  }

  onUpstreamDrain(): void {
    this.#connection.socket.resume();
  }

  onUpstreamEnd(): void {
    this.#reader.end();
  }

  onUpstreamTimeout(): void {
    if (this.#verdict) this.#fail('upstream_idle');
    else this.onRefused(refuse('upstream_timeout', 'response'));
  }

  onUpstreamClose(code: string | undefined): void {
    if (this.#isOver) return;
    if (code === undefined) this.#reader.end();
    else this.#onCut(code);
  }

  onInterim(head: ResponseHead, connection: ConnectionFields): void {
    if (head.status === 100) this.#request.openBody();
    // RFC 9110 §15.2: none for HTTP/1.0 clients; a 100 that nobody asked for would confuse some.
    if (this.#plan.head.minor === 0 || (head.status === 100 && !this.#plan.expectsContinue)) return;
    if (this.#decision?.mask) maskResponseHead(head, this.#decision.mask);
    this.#response.add(outgoingResponseHead(head, connection, 'keep'));
  }

  onHead(head: ResponseHead, framing: Framing, connection: ConnectionFields): Taken {
    const isEarly = !this.#request.isPassedOn;
    const { mustEnd, hasOverflowed } = this.#connection;
    const state = { isEarly, mustEnd, hasOverflowed };
    const judged = checkResponse({ head, framing, connection }, this.#plan, state);
    const verdict = isRefusal(judged) ? judged : (this.#beginScrub(head, framing) ?? judged);
    if (isRefusal(verdict)) {
      this.onRefused(verdict);
      return 'connection';
    }
    this.#record.status = head.status;
    if (this.#decision?.mask) maskResponseHead(head, this.#decision.mask);
    // A whole response of which nothing changes leaves as the bytes that came.
    const passes =
      !this.#scrubbed && isWhole(head, framing) && leavesUnchanged(head, connection, verdict.ending);
    const outgoing = passes ? head.bytes : outgoingResponseHead(head, connection, verdict.ending);
    if (verdict.ending === 'upgrade') {
      this.#upgrade(outgoing);
      return 'connection';
    }
    this.#verdict = verdict;
    if (framing.kind === 'until_close') this.#record.unframed = true;
    if (isEarly) this.#request.stop();
    this.#upstream?.allowIdle(connection.keepAliveTimeoutSeconds);
    this.#response.add(outgoing);
    return passes ? 'message' : 'head';
  }

  #beginScrub(head: ResponseHead, framing: Framing): Refusal | undefined {
    const mask = this.#decision?.bodyMask;
    if (!mask || framing.kind === 'none') return undefined;
    this.#scrubbed = new ScrubbedBody(mask, framing, this.#response);
    this.#reader.isBare = true;
    return refuseUnsearchable(head);
  }

  onDone(rest: number): void {
    const upstream = this.#upstream;
    this.#upstream = undefined;
    this.#scrubbed?.end();
    // Bytes behind the answer belong to no request: a connection that has them answers nobody again.
    const isShared = this.#verdict?.isReusable && !this.#decision?.injection?.isBinding;
    if (upstream && rest === 0 && isShared) this.#context.upstream.give(upstream);
    else upstream?.discard();
    this.#finish(this.#decision?.injection ? 'injected' : 'forwarded');
    this.#connection.finishExchange(this.#verdict?.ending === 'keep');
  }

  onError(code: string): void {
    if (this.#isOver) return;
    if (code === 'truncated' || code === 'no_answer') return this.#onCut(code);
    if (this.#verdict) this.#fail('upstream_malformed', code);
    else this.onRefused(refuse('upstream_malformed', code));
  }

  #onCut(code: string): void {
    if (this.#verdict) this.#fail('upstream_truncated', code);
    else if (this.#reader.hasStarted) this.onRefused(refuse('upstream_closed', code));
    else this.#onNoResponse(code);
  }

  /** The connection ended without a byte of an answer (RFC 9110 §9.2.2, RFC 9112 §9.5). */
  #onNoResponse(code: string): void {
    const { isIdempotent, framing } = this.#plan;
    if (this.#record.upstream_reused && isIdempotent && framing.kind === 'none' && !this.#hasRetried) {
      this.#hasRetried = true;
      this.#releaseUpstream();
      this.#reader = this.#reader.anew();
      return this.#acquisition.retry();
    }
    // A client retries by itself on a connection that has worked before; on its first request it would not.
    if (this.#connection.exchanges === 1) this.onRefused(refuse('upstream_closed', code));
    else this.#fail('upstream_closed', code);
  }

  #upgrade(outgoing: Buffer): void {
    const upstream = this.#upstream;
    if (!upstream) return;
    this.#response.add(outgoing);
    this.#response.flush();
    this.#upstream = undefined;
    const [connection, record, { rest }] = [this.#connection, this.#record, this.#reader];
    const joined = joinUpgraded({ connection, upstream, rest, timeouts: this.#context.timeouts, record });
    connection.setSpliced(joined, upstream.socket);
    joined.then(() => this.#finish('upgraded')).catch((error: unknown) => this.onBug(error));
  }

  onBody(piece: Buffer): void {
    if (this.#scrubbed) this.#scrubbed.push(piece);
    else this.#response.add(piece);
  }

  onRefused(refusal: Refusal): void {
    if (this.#isOver) return;
    if (this.#verdict) return this.#fail(refusal.refused, refusal.cause);
    this.#releaseUpstream();
    // A body that was not read to its end leaves no way to find the next request.
    const keepAlive = this.#request.isComplete && !this.#plan.endsConnection && refusal.status !== 421;
    const bytes = refusalBytes(refusal, { method: this.#plan.head.method, close: !keepAlive });
    this.#record.status = refusal.status;
    this.#record.reason = refusal.refused;
    this.#record.cause = refusal.cause;
    this.#response.add(bytes);
    this.#finish(refusal.status >= 500 ? 'failed' : 'refused');
    this.#connection.finishExchange(keepAlive);
  }

  /** The answer cannot be completed: the client must see the cut, so its connection goes too. */
  #fail(reason: string, cause?: string): void {
    if (this.#isOver) return;
    this.#releaseUpstream();
    this.#record.reason = reason;
    this.#record.cause = cause;
    this.#finish('failed');
    if (this.#verdict) cut(this.#connection.socket);
    else this.#connection.socket.destroy();
  }

  onBug(error: unknown): void {
    this.#context.log.error(describeBug(error), 'exchange failed');
    this.#connection.socket.uncork();
    this.onRefused(refuse('internal_error'));
  }

  #releaseUpstream(): void {
    this.#upstream?.discard();
    this.#upstream = undefined;
  }

  #finish(outcome: Outcome): void {
    this.#isOver = true;
    this.#response.flush();
    this.#acquisition.end();
    this.#request.stop();
    this.#record.bytes_up += this.#request.bytes;
    this.#record.bytes_down += this.#response.bytes;
    if (this.#scrubbed?.places) this.#record.scrubbed = this.#scrubbed.places;
    this.#record.outcome = outcome;
    this.#context.recorder.emit(this.#record, this.#startedMs);
  }
}
