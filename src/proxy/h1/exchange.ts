// One HTTP/1.1 request and its response, in the order of events: plan, gate, upstream connection, request out, response in.
// Each step may refuse. Nothing is sent before the gate has decided. It ends with exactly one record.
import { describeBug } from '../../base/log.ts';
import type { ConnectionFields } from '../../http1/connection-fields.ts';
import type { Framing } from '../../http1/framing.ts';
import type { RequestHead, ResponseHead } from '../../http1/head-parser.ts';
import { type ResponseVerdict, checkResponse, framingForClient } from '../gate/response-check.ts';
import { UpstreamAcquisition, type AcquisitionCallbacks } from '../gate/acquisition.ts';
import type { ClientConnection, RunningExchange } from './client-connection.ts';
import type { ProxyContext } from '../context.ts';
import { type SpliceEnd, closeIncomplete, splice } from '../splice.ts';
import type { GateDecision } from '../gate/inject.ts';
import { respondAsReservedHost } from './local-response.ts';
import { outgoingRequestHead } from './outgoing-head.ts';
import type { ExchangeRecord, Outcome } from '../record.ts';
import { clientEndReason } from '../gate/exchange-record.ts';
import { type Refusal, isRefusal, refusalBytes, refuse } from '../refusal.ts';
import { RequestOut } from './request-out.ts';
import { type RequestPlan, planRequest, refusalOfError } from '../gate/request-plan.ts';
import { ResponseOut } from './response-out.ts';
import { ResponseReader, type ResponseSink, type Taken } from './response-reader.ts';
import { refuseUnsearchable } from '../mask/scrub.ts';
import { refuseClosed } from '../upstream/client-certificate.ts';
import type { UpstreamConnection, UpstreamOwner } from '../upstream/connection-pool.ts';

/** Starts an exchange for a head other than CONNECT; `rest` came behind it. */
export function startExchange(connection: ClientConnection, head: RequestHead, rest: Buffer): void {
  const { context, tunnel, scheme } = connection.scope;
  const { method } = head;
  if (context.recorder.isBlocked) return connection.refuse(refuse('record_sink_blocked'), { method });
  const plan = planRequest(head, tunnel, scheme);
  if (isRefusal(plan)) return connection.refuse(plan, { method });
  // A tunnel never names it: its CONNECT is refused.
  if (!tunnel && plan.target.authority.host === context.reserved.name)
    return respondAsReservedHost(connection, plan, rest);
  new Exchange(connection, plan).start(rest);
}

/** Begins with `start`. Ends with `finishExchange` of its connection, or closes that. */
class Exchange
  implements RunningExchange, UpstreamOwner, ResponseSink, AcquisitionCallbacks<UpstreamConnection>
{
  readonly #connection: ClientConnection;
  readonly #context: ProxyContext;
  readonly #plan: RequestPlan;
  readonly #startedMs = performance.now();
  readonly #request: RequestOut;
  readonly #response: ResponseOut;
  readonly #acquisition: UpstreamAcquisition<UpstreamConnection>;
  #upstream: UpstreamConnection | undefined;
  #reader: ResponseReader;
  #hasRetried = false;
  /** Set with the final head: after that nothing can be refused, and a failure closes the connection. */
  #verdict: Exclude<ResponseVerdict, Refusal> | undefined;
  #hasEnded = false;

  constructor(connection: ClientConnection, plan: RequestPlan) {
    this.#connection = connection;
    this.#context = connection.scope.context;
    this.#plan = plan;
    this.#request = new RequestOut(plan, connection.socket);
    this.#response = new ResponseOut(connection.socket);
    this.#reader = new ResponseReader(plan.head.method, connection.responseLimits, this);
    this.#acquisition = new UpstreamAcquisition(connection.scope, plan, connection.source, this);
  }

  start(rest: Buffer): void {
    this.#connection.run(this);
    if (rest.length > 0) this.onClientBytes(rest);
    if (!this.#hasEnded) this.#acquisition.start();
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
    // A part of the body may be sent: the refusal closes the upstream's connection, so that it is no complete request.
    if (error) return this.onRefused(refusalOfError(error));
    if (taken < chunk.length) this.#connection.bufferAhead(chunk.subarray(taken));
  }

  onClientDrain(): void {
    this.#upstream?.socket.resume();
  }

  onClientIdle(): void {
    // A client that is paused for its upstream is not idle; the timeout of the upstream applies.
    if (this.#connection.socket.isPaused()) return;
    if (!this.#request.isComplete && !this.#verdict) return this.onRefused(refuse('request_timeout', 'body'));
    // The client does not read its response. While no response has come, the timeout of the upstream applies.
    if (this.#connection.socket.writableLength > 0) this.#fail('client_stalled');
  }

  onClientClosed(): void {
    this.#fail(clientEndReason(this.#connection));
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
    if (this.#hasEnded) return;
    if (code === undefined) this.#reader.end();
    else this.#onTruncated(code);
  }

  onInterim(head: ResponseHead, connection: ConnectionFields): void {
    if (head.status === 100) this.#request.openBody();
    // RFC 9110 §15.2: not for HTTP/1.0 clients. A 100 that was not requested confuses some clients.
    if (this.#plan.head.minor === 0 || (head.status === 100 && !this.#plan.expectsContinue)) return;
    this.#response.addInterim(head, connection, this.#decision?.mask);
  }

  onHead(head: ResponseHead, framing: Framing, connection: ConnectionFields): Taken {
    const isEarly = !this.#request.isForwarded;
    const { mustEnd, hasOverflowed } = this.#connection;
    const state = { isEarly, mustEnd, hasOverflowed };
    const checked = checkResponse({ head, framing, connection }, this.#plan, state);
    const sent = framingForClient(framing, this.#plan);
    if (sent !== framing) this.#reader.isBare = true;
    const verdict = isRefusal(checked) ? checked : (this.#beginScrub(head, sent) ?? checked);
    if (isRefusal(verdict)) {
      this.onRefused(verdict);
      return 'connection';
    }
    this.#record.status = head.status;
    const isComplete = this.#response.addHead(head, sent, connection, verdict.ending, this.#decision?.mask);
    if (verdict.ending === 'upgrade') {
      this.#upgrade();
      return 'connection';
    }
    this.#verdict = verdict;
    if (framing.kind === 'until_close') this.#record.unframed = true;
    if (isEarly) this.#request.stop();
    this.#upstream?.allowIdle(connection.keepAliveTimeoutSeconds);
    return isComplete ? 'message' : 'head';
  }

  #beginScrub(head: ResponseHead, framing: Framing): Refusal | undefined {
    const mask = this.#decision?.bodyMask;
    if (!mask || framing.kind === 'none') return undefined;
    this.#response.scrubBody(mask, framing);
    this.#reader.isBare = true;
    return refuseUnsearchable(head);
  }

  onDone(rest: number): void {
    const upstream = this.#upstream;
    this.#upstream = undefined;
    this.#response.endBody();
    // Bytes behind the response belong to no request: they would be the response to the next one.
    const isShared = this.#verdict?.isReusable && !this.#decision?.injection?.isBinding;
    const endedMs = performance.now();
    if (upstream && rest === 0 && isShared) this.#context.upstream.give(upstream, endedMs);
    else upstream?.discard();
    this.#finish(this.#decision?.injection ? 'injected' : 'forwarded', endedMs);
    this.#connection.finishExchange(this.#verdict?.ending === 'keep');
  }

  onError(code: string): void {
    if (this.#hasEnded) return;
    if (code === 'truncated' || code === 'no_response') return this.#onTruncated(code);
    if (this.#verdict) this.#fail('upstream_malformed', code);
    else this.onRefused(refuse('upstream_malformed', code));
  }

  #onTruncated(code: string): void {
    if (this.#verdict) this.#fail('upstream_truncated', code);
    else if (this.#reader.hasStarted) this.onRefused(refuse('upstream_closed', code));
    else this.#onNoResponse(code);
  }

  /** The connection was closed without a byte of a response (RFC 9110 §9.2.2, RFC 9112 §9.5). */
  #onNoResponse(code: string): void {
    const { isIdempotent, framing } = this.#plan;
    if (this.#record.upstream_reused && isIdempotent && framing.kind === 'none' && !this.#hasRetried) {
      this.#hasRetried = true;
      this.#releaseUpstream();
      this.#reader = this.#reader.restarted();
      return this.#acquisition.retry();
    }
    const refusal = refuseClosed(this.#upstream, code);
    // A client retries by itself on a connection that has worked before, but not on its first request.
    if (this.#connection.exchanges === 1 || refusal.refused !== 'upstream_closed') this.onRefused(refusal);
    else this.#fail('upstream_closed', code);
  }

  /** After a 101 to an upgrade that we sent: both connections are spliced. */
  #upgrade(): void {
    const upstream = this.#upstream;
    if (!upstream) return;
    this.#response.flush();
    this.#upstream = undefined;
    const { tunnelIdleMs: idleMs, halfClosedMs } = this.#context.timeouts;
    const ending = splice({
      client: this.#connection.socket,
      // Bytes that the client sent early are forwarded only here, behind the 101 (RFC 9110 §7.8).
      fromClient: this.#connection.detach(),
      upstream: upstream.detach(),
      fromUpstream: this.#reader.rest,
      ...{ idleMs, halfClosedMs },
      counted: { by: this.#context.counters, as: 'upgrade' },
    })
      .then((end) => this.#onSpliceEnd(end))
      .catch((error: unknown) => this.onBug(error));
    this.#connection.setSpliced(ending, upstream.socket);
  }

  #onSpliceEnd({ bytesUp, bytesDown, reason }: SpliceEnd): void {
    this.#record.bytes_up += bytesUp;
    this.#record.bytes_down += bytesDown;
    if (reason !== 'closed') this.#record.reason = reason;
    this.#finish('upgraded');
  }

  onBody(piece: Buffer): void {
    this.#response.addBody(piece);
  }

  onRefused(refusal: Refusal): void {
    if (this.#hasEnded) return;
    if (this.#verdict) return this.#fail(refusal.refused, refusal.cause);
    this.#releaseUpstream();
    // Without the end of the body the next request cannot be found.
    const keepAlive = this.#request.isComplete && !this.#plan.endsConnection && refusal.status !== 421;
    const bytes = refusalBytes(refusal, { method: this.#plan.head.method, close: !keepAlive });
    this.#record.status = refusal.status;
    this.#record.reason = refusal.refused;
    this.#record.cause = refusal.cause;
    this.#response.add(bytes);
    this.#finish(refusal.status >= 500 ? 'failed' : 'refused');
    this.#connection.finishExchange(keepAlive);
  }

  /** The response cannot be completed: the client must notice, so its connection is closed too. */
  #fail(reason: string, cause?: string): void {
    if (this.#hasEnded) return;
    this.#releaseUpstream();
    this.#record.reason = reason;
    this.#record.cause = cause;
    this.#finish('failed');
    if (this.#verdict) closeIncomplete(this.#connection.socket);
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

  #finish(outcome: Outcome, endedMs: number = performance.now()): void {
    this.#hasEnded = true;
    this.#response.flush();
    this.#acquisition.end();
    this.#request.stop();
    this.#record.bytes_up += this.#request.bytes;
    this.#record.bytes_down += this.#response.bytes;
    this.#record.scrubbed = this.#response.maskedRanges || undefined;
    this.#record.outcome = outcome;
    this.#context.recorder.emit(this.#record, this.#startedMs, endedMs);
  }
}
