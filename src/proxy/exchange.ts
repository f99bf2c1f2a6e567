// One request and its answer, in the order in which they happen: plan, gate, connection, request out, answer in.
// Each step may refuse; until the gate has answered nothing leaves. Exactly one record at the end, whatever the
// end is.
import type { ConnectionFields } from '../http1/connection-fields.ts';
import type { Framing } from '../http1/framing.ts';
import type { RequestHead, ResponseHead } from '../http1/head-parser.ts';
import type { Policy } from '../policy/policy.ts';
import { type AnswerVerdict, judgeAnswer } from './answer.ts';
import type { ClientConnection, RunningExchange } from './client-connection.ts';
import { bindsConnection } from './connection-auth.ts';
import type { ProxyContext } from './context.ts';
import { type Passage, judgeRequest } from './inject.ts';
import { maskResponseHead } from './mask.ts';
import { outgoingRequestHead, outgoingResponseHead } from './outgoing-head.ts';
import { type ExchangeRecord, recordedPath } from './record.ts';
import { type Refusal, isRefusal, refusalBytes, refuse } from './refusal.ts';
import { RequestBody } from './request-body.ts';
import { type RequestPlan, planRequest, refusalOfFault } from './request-plan.ts';
import { ResponseReader, type ResponseSink } from './response-reader.ts';
import type { UpstreamConnection, UpstreamOwner } from './upstream.ts';
import { dialTarget, poolKey } from './upstream-target.ts';
import { continueUpgraded } from './upgrade.ts';

/** A body may wait this much for its host before the client is made to wait. */
const MAX_HELD_BYTES = 65_536;

/** Starts an exchange for a head that is no CONNECT. */
export function startExchange(connection: ClientConnection, head: RequestHead, rest: Buffer): void {
  const { context, tunnel, scheme } = connection.scope;
  const details = { method: head.method, ...(tunnel ? { authority: tunnel.text } : {}) };
  if (context.recorder.isBlocked) return connection.refuse(refuse('record_sink_blocked'), details);
  const plan = planRequest(head, tunnel, scheme);
  if (isRefusal(plan)) return connection.refuse(plan, details);
  new Exchange(connection, plan).start(rest);
}

class Exchange implements RunningExchange, UpstreamOwner, ResponseSink {
  readonly #connection: ClientConnection;
  readonly #context: ProxyContext;
  readonly #plan: RequestPlan;
  readonly #policy: Policy;
  readonly #record: ExchangeRecord;
  readonly #startedMs: number = performance.now();
  readonly #body: RequestBody;
  #abort: AbortController | undefined;
  readonly #isFirst: boolean;
  #passage: Passage | undefined;
  #upstream: UpstreamConnection | undefined;
  #reader: ResponseReader;
  #continueTimer: NodeJS.Timeout | undefined;
  #hasRetried = false;
  /** Set with the final head: from there on nothing can be refused, only cut. */
  #answer: Exclude<AnswerVerdict, Refusal> | undefined;
  #isOver = false;

  constructor(connection: ClientConnection, plan: RequestPlan) {
    const { context, clientAddress } = connection.scope;
    this.#connection = connection;
    this.#context = context;
    this.#plan = plan;
    this.#policy = context.policy();
    this.#isFirst = connection.exchanges === 1;
    this.#body = new RequestBody(plan.framing);
    this.#reader = this.#createReader();
    this.#record = {
      sandbox: context.sandbox,
      revision: this.#policy.revision,
      client: clientAddress,
      method: plan.head.method,
      scheme: plan.scheme,
      authority: plan.target.authority.text,
      path: recordedPath(plan.target.path),
      bytes_up: 0,
      bytes_down: 0,
    };
  }

  start(rest: Buffer): void {
    this.#connection.run(this);
    if (rest.length > 0) this.onClientBytes(rest);
    if (this.#isOver) return;
    const { egress, callbacks } = this.#context;
    const { target, scheme } = this.#plan;
    const { authority, path } = target;
    const verdict = judgeRequest({ policy: this.#policy, authority, path, scheme, egress, callbacks });
    if (verdict instanceof Promise) {
      verdict.then(
        (settled) => this.#onVerdict(settled),
        (error: unknown) => this.#onBug(error),
      );
    } else this.#onVerdict(verdict);
  }

  // ---- towards the host ----

  #onVerdict(verdict: Passage | Refusal): void {
    if (this.#isOver) return;
    if (isRefusal(verdict)) return this.#refuse(verdict);
    this.#passage = verdict;
    const record = this.#record;
    if (verdict.rule !== undefined) record.rule = verdict.rule;
    if (verdict.callback !== undefined) record.callback = verdict.callback;
    if (verdict.isCached !== undefined) record.callback_cached = verdict.isCached;
    if (verdict.reason !== undefined) record.reason = verdict.reason;
    const { isUpgrade, isIdempotent, head } = this.#plan;
    const isPooled = !isUpgrade && head.minor === 1 && !bindsConnection(head);
    const wanted = { key: this.#poolKey(), clientId: this.#connection.id, isIdempotent };
    const pooled = isPooled ? this.#context.upstream.take(wanted) : undefined;
    if (pooled) this.#send(pooled);
    else this.#dial();
  }

  #poolKey(): string {
    return poolKey(this.#policy, this.#plan.scheme, this.#plan.target.authority);
  }

  #dial(): void {
    this.#abort = new AbortController();
    const { scheme, target } = this.#plan;
    const wanted = dialTarget(this.#policy, scheme, target.authority);
    this.#context.upstream.open(this.#poolKey(), wanted, this.#abort.signal).then(
      (opened) => {
        if (this.#isOver) {
          if (!isRefusal(opened)) opened.discard();
        } else if (isRefusal(opened)) this.#refuse(opened);
        else this.#send(opened);
      },
      (error: unknown) => this.#onBug(error),
    );
  }

  #send(upstream: UpstreamConnection): void {
    this.#upstream = upstream;
    this.#record.upstream_reused = upstream.uses > 0;
    upstream.own(this, this.#connection.id);
    const { socket } = upstream;
    const head = outgoingRequestHead(this.#plan, this.#passage?.injection);
    this.#record.bytes_up += head.length;
    socket.cork();
    socket.write(head);
    if (this.#plan.expectsContinue) {
      this.#continueTimer = setTimeout(() => this.#openBody(), this.#context.timeouts.continueMs);
    } else this.#openBody();
    socket.uncork();
  }

  #openBody(): void {
    clearTimeout(this.#continueTimer);
    const { socket } = this.#upstream ?? {};
    if (!socket || this.#answer) return;
    this.#body.openTo((piece) => {
      this.#record.bytes_up += piece.length;
      if (!socket.write(piece)) this.#connection.socket.pause();
    });
    if (!socket.writableNeedDrain) this.#connection.socket.resume();
  }

  // ---- the client's events ----

  onClientBytes(chunk: Buffer): void {
    const taken = this.#body.push(chunk);
    if (this.#body.fault) {
      // Half a body has perhaps left: the host must never take what came for a whole request.
      this.#upstream?.socket.destroy();
      return this.#refuse(refusalOfFault(this.#body.fault));
    }
    if (taken < chunk.length) this.#connection.keepAhead(chunk.subarray(taken));
    if (this.#body.heldBytes > MAX_HELD_BYTES) this.#connection.socket.pause();
  }

  onClientDrain(): void {
    this.#upstream?.socket.resume();
  }

  onClientIdle(): void {
    // A client that we make wait for its host is not idle: the host's own limit ends that.
    if (this.#connection.socket.isPaused()) return;
    if (!this.#body.isComplete && !this.#answer) return this.#refuse(refuse('request_timeout', 'body'));
    // An answer that the client does not read; one that is not due yet has its own limit.
    if (this.#connection.socket.writableLength > 0) this.#fail('client_stalled');
  }

  onClientGone(): void {
    this.#fail('client_gone');
  }

  // ---- the host's events ----

  onUpstreamData(chunk: Buffer): void {
    const { socket } = this.#connection;
    socket.cork();
    this.#reader.push(chunk);
    socket.uncork();
    if (socket.writableNeedDrain) this.#upstream?.socket.pause();
  }

  onUpstreamDrain(): void {
    this.#connection.socket.resume();
  }

  onUpstreamEnd(): void {
    this.#reader.end();
  }

  onUpstreamTimeout(): void {
    if (this.#answer) this.#fail('upstream_idle');
    else this.#refuse(refuse('upstream_timeout', 'answer'));
  }

  onUpstreamClose(code: string | undefined): void {
    if (this.#isOver) return;
    if (code === undefined) this.#reader.end();
    else this.#onCut(code);
  }

  // ---- the answer ----

  onInterim(head: ResponseHead, connection: ConnectionFields): void {
    if (head.status === 100) this.#openBody();
    // RFC 9110 §15.2: none for HTTP/1.0 clients; a 100 that nobody asked for would confuse some.
    if (this.#plan.head.minor === 0 || (head.status === 100 && !this.#plan.expectsContinue)) return;
    if (this.#passage?.mask) maskResponseHead(head, this.#passage.mask);
    this.#write(outgoingResponseHead(head, connection, 'keep'));
  }

  onHead(head: ResponseHead, framing: Framing, connection: ConnectionFields): boolean {
    clearTimeout(this.#continueTimer);
    const isEarly = !this.#body.isComplete;
    const state = { isEarly, mustEnd: this.#connection.mustEnd };
    const verdict = judgeAnswer({ head, framing, connection }, this.#plan, state);
    if (isRefusal(verdict)) {
      this.#refuse(verdict);
      return false;
    }
    this.#record.status = head.status;
    if (this.#passage?.mask) maskResponseHead(head, this.#passage.mask);
    const outgoing = outgoingResponseHead(head, connection, verdict.ending);
    if (verdict.ending === 'upgrade') {
      this.#upgrade(outgoing);
      return false;
    }
    this.#answer = verdict;
    if (framing.kind === 'until_close') this.#record.unframed = true;
    if (isEarly) {
      // What the client still sends is thrown away, and both connections end.
      this.#body.discard();
      this.#connection.socket.resume();
    }
    this.#upstream?.allowIdle(connection.keepAliveTimeoutSeconds);
    this.#write(outgoing);
    return true;
  }

  onBody(piece: Buffer): void {
    this.#write(piece);
  }

  onDone(rest: number): void {
    const upstream = this.#upstream;
    this.#upstream = undefined;
    // Bytes behind the answer belong to no request: a connection that has them answers nobody again.
    if (upstream && rest === 0 && this.#answer?.isReusable) this.#context.upstream.give(upstream);
    else upstream?.discard();
    this.#finish(this.#passage?.injection ? 'injected' : 'forwarded');
    this.#connection.next(this.#answer?.ending === 'keep');
  }

  onFault(code: string): void {
    if (this.#isOver) return;
    if (code === 'truncated' || code === 'no_answer') return this.#onCut(code);
    if (this.#answer) this.#fail('upstream_malformed', code);
    else this.#refuse(refuse('upstream_malformed', code));
  }

  #onCut(code: string): void {
    if (this.#answer) this.#fail('upstream_truncated', code);
    else if (this.#reader.hasStarted) this.#refuse(refuse('upstream_closed', code));
    else this.#onNoAnswer(code);
  }

  /** The connection ended without a byte of an answer (RFC 9110 §9.2.2, RFC 9112 §9.5). */
  #onNoAnswer(code: string): void {
    const { isIdempotent, framing } = this.#plan;
    if (this.#record.upstream_reused && isIdempotent && framing.kind === 'none' && !this.#hasRetried) {
      this.#hasRetried = true;
      this.#releaseUpstream();
      this.#reader = this.#createReader();
      return this.#dial();
    }
    // A client retries by itself on a connection that has worked before; on its first request it would not.
    if (this.#isFirst) this.#refuse(refuse('upstream_closed', code));
    else this.#fail('upstream_closed', code);
  }

  #upgrade(outgoing: Buffer): void {
    const upstream = this.#upstream;
    if (!upstream) return;
    this.#write(outgoing);
    this.#upstream = undefined;
    this.#isOver = true;
    const { timeouts } = this.#context;
    const fromUpstream = this.#reader.rest;
    void continueUpgraded({ connection: this.#connection, upstream, fromUpstream, timeouts }).then((end) => {
      this.#record.bytes_up += end.bytesUp;
      this.#record.bytes_down += end.bytesDown;
      if (end.reason !== 'closed') this.#record.reason = end.reason;
      this.#emit('upgraded');
    });
  }

  // ---- the end ----

  #write(bytes: Buffer): void {
    this.#record.bytes_down += bytes.length;
    this.#connection.socket.write(bytes);
  }

  #refuse(refusal: Refusal): void {
    if (this.#isOver) return;
    if (this.#answer) return this.#fail(refusal.refused, refusal.cause);
    this.#releaseUpstream();
    // A body that was not read to its end leaves no way to find the next request.
    const keepAlive = this.#body.isComplete && !this.#plan.endsConnection && refusal.status !== 421;
    const bytes = refusalBytes(refusal, { method: this.#plan.head.method, close: !keepAlive });
    this.#record.status = refusal.status;
    this.#record.reason = refusal.refused;
    if (refusal.cause !== undefined) this.#record.cause = refusal.cause;
    this.#write(bytes);
    this.#body.discard();
    this.#finish(refusal.status >= 500 ? 'failed' : 'refused');
    this.#connection.next(keepAlive);
  }

  /** The answer cannot be completed: the client must see the cut, so its connection goes too. */
  #fail(reason: string, cause?: string): void {
    if (this.#isOver) return;
    this.#releaseUpstream();
    this.#record.reason = reason;
    if (cause !== undefined) this.#record.cause = cause;
    this.#finish('failed');
    this.#connection.socket.destroy();
  }

  #onBug(error: unknown): void {
    const name = error instanceof Error ? error.name : 'unknown';
    this.#context.log.error(
      { error: name, stack: error instanceof Error ? error.stack : undefined },
      'exchange failed',
    );
    this.#refuse(refuse('internal_error', name));
  }

  #releaseUpstream(): void {
    this.#upstream?.discard();
    this.#upstream = undefined;
  }

  #finish(outcome: 'injected' | 'forwarded' | 'refused' | 'failed'): void {
    this.#isOver = true;
    this.#abort?.abort();
    this.#emit(outcome);
  }

  #emit(outcome: ExchangeRecord['outcome'] & string): void {
    clearTimeout(this.#continueTimer);
    const { injection } = this.#passage ?? {};
    if (injection && outcome !== 'refused') this.#record.injected = injection.names;
    this.#record.outcome = outcome;
    this.#context.recorder.emit(this.#record, this.#startedMs);
  }

  #createReader(): ResponseReader {
    const { limits } = this.#context;
    return new ResponseReader(
      this.#plan.head.method,
      {
        maxHeadBytes: limits.maxResponseHeadBytes,
        maxFields: limits.maxFields,
        maxTargetBytes: limits.maxTargetBytes,
      },
      this,
    );
  }
}
