// A client's connection: cuts its bytes into heads and bodies, has one request at a time decided, and hands canonical bytes to
// node:http. What is refused here never reaches node:http or a target.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { describeBug } from '../base/log.ts';
import { HeadBuffer } from '../http1/head-buffer.ts';
import { isHeadError } from '../http1/head-error.ts';
import { parseRequestHead } from '../http1/head-parser.ts';
import { RequestBody } from '../http1/request-body.ts';
import { cutSocket, endSocket } from './cut-socket.ts';
import type { GatewayContext } from './context.ts';
import { Exchange } from './exchange.ts';
import { KEEP_ALIVE_PROBE_MS, MAX_AHEAD_BYTES } from './limits.ts';
import { type GatewayRecord, recordOfNoRequest } from './record.ts';
import { Refusal, refusalOfHead, refuse } from './refusal.ts';
import { planRequest } from './request-plan.ts';
import { ServedSocket } from './served-socket.ts';
import { UpgradedRelay } from './upgraded-relay.ts';

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n');

export class ClientConnection {
  readonly raw: Socket;
  readonly served: ServedSocket<ClientConnection>;
  readonly remoteAddress: string | undefined;
  readonly scheme: 'http' | 'https';
  readonly #context: GatewayContext;
  readonly #input: HeadBuffer;
  #exchange: Exchange | undefined;
  #relay: UpgradedRelay | undefined;
  #headTimer: NodeJS.Timeout | undefined;
  #isEnding = false;
  /** node:http has enough bytes of the request for now. */
  #isServedFull = false;
  #activity = 0;
  #silentSinceMs: number = performance.now();

  constructor(raw: Socket, context: GatewayContext) {
    this.raw = raw;
    this.remoteAddress = raw.remoteAddress;
    this.scheme = raw instanceof TLSSocket ? 'https' : 'http';
    this.#context = context;
    this.#input = new HeadBuffer(context.limits.maxHeadBytes);
    this.served = new ServedSocket(raw, this);
    raw.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    raw
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', () => raw.destroy())
      .on('close', () => this.#onClose());
  }

  get exchange(): Exchange | undefined {
    return this.#exchange;
  }

  /** The response that is being sent, or comes next, is the last one. */
  get isLast(): boolean {
    const exchange = this.#exchange;
    if (!exchange || exchange.plan.endsConnection) return true;
    if (this.raw.readableEnded && this.#input.length === 0) return true;
    // What follows a response that came before the end of its request would be read as the rest of that request.
    return this.#context.isDraining() || !exchange.body.isForwarded;
  }

  /** Closes a connection without a request, and asks the client of an upgraded one to; others end with their response (`isLast`). */
  drain(): void {
    if (this.#relay) this.#relay.leave();
    else if (!this.#exchange && this.#input.length === 0) this.end();
  }

  /** Called at intervals. Bytes that move in either direction are activity. */
  checkIdle(nowMs: number): void {
    const { raw } = this;
    const activity = raw.bytesRead + raw.bytesWritten - raw.writableLength;
    if (this.#relay) return this.#relay.checkIdle(nowMs);
    if (activity !== this.#activity) {
      this.#activity = activity;
      this.#silentSinceMs = nowMs;
      return;
    }
    if (nowMs - this.#silentSinceMs < this.#idleLimitMs()) return;
    this.#silentSinceMs = nowMs;
    this.#onIdle();
  }

  /** Our own response, before anything of the request was forwarded. */
  refuse(refusal: Refusal): void {
    const exchange = this.#exchange;
    const isLast = this.isLast || (exchange !== undefined && exchange.plan.framing.kind !== 'none');
    this.raw.write(this.#context.refusalBytes(refusal, isLast, exchange));
    this.#recordRefusal(refusal);
    if (isLast) this.end();
    else this.#finish();
  }

  /** node:http has sent the response. */
  finishExchange(): void {
    const isLast = this.isLast;
    this.record('complete');
    if (isLast) this.end();
    else this.#finish();
  }

  record(end: GatewayRecord['end']): void {
    const record = this.#exchange?.end(end);
    if (record) this.#context.record(record);
  }

  /** The response cannot be completed: the client must see that. */
  cut(): void {
    this.record('cut');
    const isDelimited = this.#exchange?.plan.head.minor === 1;
    // Without a length or chunks the end of the connection is the end of the body, unless it is a reset.
    if (isDelimited) this.raw.destroySoon();
    else cutSocket(this.raw);
  }

  /** Ends whatever is going on. */
  abort(): void {
    this.record('cut');
    cutSocket(this.raw);
  }

  /** A bug ends its connection, and nothing else. */
  fail(error: unknown): void {
    this.#context.log.error(describeBug(error), 'a connection failed');
    this.abort();
  }

  /** Joins the client with the target after a 101. */
  upgrade(target: Duplex, head: Buffer, fromTarget: Buffer): void {
    const exchange = this.#exchange;
    if (!exchange) return void target.destroy();
    this.raw.off('data', this.#onData).off('end', this.#onEnd);
    this.#relay = new UpgradedRelay({ client: this.raw, target, limits: this.#context.limits, exchange });
    this.raw.write(head);
    this.#relay.start(this.#input.take(), fromTarget);
    if (exchange.isLeaving) this.#relay.leave();
  }

  end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#exchange = undefined;
    this.#input.take();
    clearTimeout(this.#headTimer);
    endSocket(this.raw);
  }

  onWanted(): void {
    this.#isServedFull = false;
    this.#resume();
  }

  onServed(): void {
    this.end();
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#isEnding) return;
    const exchange = this.#exchange;
    if (exchange) return this.#passBody(exchange, chunk);
    this.#input.push(chunk);
    this.#readHead();
  };

  #readHead(): void {
    if (this.#isEnding || this.raw.destroyed || this.#input.length === 0) return;
    const { headLimits, limits } = this.#context;
    const bytes = this.#input.takeForParsing();
    const head = bytes && parseRequestHead(bytes, 0, headLimits);
    if (head === undefined) {
      this.#headTimer ??= setTimeout(() => this.refuse(refuse('request_timeout')), limits.headMs);
      return;
    }
    clearTimeout(this.#headTimer);
    this.#headTimer = undefined;
    this.#input.take();
    if (isHeadError(head)) return this.refuse(refusalOfHead(head));
    const plan = planRequest(head);
    if (plan instanceof Refusal) return this.refuse(plan);
    const exchange = new Exchange(plan, new RequestBody(plan.framing));
    this.#exchange = exchange;
    this.#silentSinceMs = performance.now();
    if (head.end < head.bytes.length) this.#passBody(exchange, head.bytes.subarray(head.end));
    if (this.#exchange !== exchange) return;
    const decided = this.#context.decide(exchange, this);
    decided.then((accepted) => this.#begin(exchange, accepted)).catch((error: unknown) => this.fail(error));
  }

  #begin(exchange: Exchange, accepted: Buffer | Refusal): void {
    // The client has left, its body was refused, or what it was granted has ended.
    if (this.#exchange !== exchange || this.raw.destroyed) return;
    if (accepted instanceof Refusal) return this.refuse(accepted);
    this.#serve(accepted);
    if (!exchange.plan.expectsContinue) this.#openBody(exchange);
  }

  /** The client may send the body that it holds back. */
  continueBody(): void {
    const exchange = this.#exchange;
    if (!exchange) return;
    this.raw.write(CONTINUE);
    this.#openBody(exchange);
  }

  #openBody({ body }: Exchange): void {
    body.openTo((piece) => this.#serve(piece));
    this.#resume();
  }

  #serve(bytes: Buffer): void {
    if (!this.served.push(bytes)) this.#isServedFull = true;
  }

  #passBody(exchange: Exchange, chunk: Buffer): void {
    const { body } = exchange;
    const taken = body.push(chunk);
    if (body.error !== undefined) return this.#refuseBody(refusalOfHead(body.error));
    if (taken < chunk.length) this.#input.push(taken === 0 ? chunk : chunk.subarray(taken));
    if (this.#mustPause(exchange)) this.raw.pause();
  }

  #mustPause({ body }: Exchange): boolean {
    const isBodyDue = !body.isComplete && (this.#isServedFull || body.bufferedBytes > MAX_AHEAD_BYTES);
    return isBodyDue || this.#input.length > MAX_AHEAD_BYTES;
  }

  #resume(): void {
    if (this.raw.isPaused() && !(this.#exchange && this.#mustPause(this.#exchange))) this.raw.resume();
  }

  /** Of a request that was forwarded in part, the rest never comes: the target must not take it for complete. */
  #refuseBody(refusal: Refusal): void {
    const exchange = this.#exchange;
    if (!exchange) return;
    if (exchange.status !== undefined) return this.cut();
    this.raw.write(this.#context.refusalBytes(refusal, true, exchange));
    this.#recordRefusal(refusal);
    this.end();
    this.served.destroy();
  }

  #recordRefusal({ status, code }: Refusal): void {
    const exchange = this.#exchange;
    if (exchange) Object.assign(exchange, { status, refusal: code });
    if (exchange) return this.record('complete');
    this.#context.record(recordOfNoRequest(status, code));
  }

  #finish(): void {
    this.#exchange = undefined;
    this.#silentSinceMs = performance.now();
    this.#resume();
    // One turn later: what a client sends ahead must not keep others waiting.
    if (this.#input.length > 0) setImmediate(() => this.#exchange ?? this.#readHead());
  }

  #idleLimitMs(): number {
    const { keepAliveMs, clientIdleMs, responseIdleMs, finWaitMs } = this.#context.limits;
    if (!this.#exchange) return keepAliveMs;
    if (this.raw.readableEnded) return finWaitMs;
    return this.#isClientDue(this.#exchange) ? clientIdleMs : responseIdleMs;
  }

  /** The client owes the rest of its body, or does not read its response. */
  #isClientDue({ body }: Exchange): boolean {
    return this.raw.writableLength > 0 || (!body.isComplete && !this.raw.isPaused());
  }

  #onIdle(): void {
    const exchange = this.#exchange;
    if (this.#isEnding || this.raw.readableEnded || this.raw.writableLength > 0)
      return void this.raw.destroy();
    if (!exchange) return this.#input.length === 0 ? this.end() : undefined;
    if (this.#isClientDue(exchange)) return this.#refuseBody(refuse('request_timeout'));
    if (exchange.forwarding) exchange.forwarding.expire();
    else this.refuse(refuse('target_timeout'));
  }

  /**
   * Within a body a FIN is an abort. Behind a complete request it may be the half-close of a client that reads on: its response
   * is sent, but waited for no longer than `finWaitMs`.
   */
  readonly #onEnd = (): void => {
    if (this.#exchange) return this.#exchange.body.isComplete ? undefined : void this.raw.destroy();
    if (!this.#isEnding) this.end();
    else if (this.raw.writableFinished) this.raw.destroy();
  };

  #onClose(): void {
    clearTimeout(this.#headTimer);
    if (this.#relay) this.record(this.#relay.end);
    else this.record('left');
    this.#exchange = undefined;
    this.served.destroy();
  }
}
