// A response over HTTP/2 from the upstream's stream to the client's: interim heads, head, body with back-pressure, trailers.
// The relay knows what may pass and when the response is complete. Its owner decides about responses that may not pass or
// break off.
import { type ClientHttp2Stream, type ServerHttp2Stream, constants } from 'node:http2';
import { expectsContinue } from '../../http1/expect.ts';
import { isHeadError } from '../../http1/head-error.ts';
import { Field } from '../../http1/field-name.ts';
import { type HeadLimits, type ResponseHead, fieldValue, findField } from '../../http1/head-parser.ts';
import { rejectResponse } from '../gate/response-check.ts';
import { BodyMask } from '../mask/body-mask.ts';
import {
  type ResponseBlock,
  byName,
  isNoTrailer,
  outgoingFields,
  parseResponseList,
  parseTrailerList,
} from './header-block.ts';
import type { HeaderList } from '../upstream/h2-session.ts';
import { MAX_INTERIM_BYTES, MAX_INTERIM_RESPONSES } from '../limits.ts';
import type { GateDecision } from '../gate/inject.ts';
import type { Mask } from '../mask/mask.ts';
import { type Refusal, refuse } from '../refusal.ts';
import type { RequestPlan } from '../gate/request-plan.ts';
import { refuseUnsearchable } from '../mask/scrub.ts';
import { IdleLimit } from './idle-limit.ts';
import { sendHead } from './stream-response.ts';
import { TurnWriter, writeAll } from './turn-writer.ts';
import type { UpstreamSession } from '../upstream/h2-session.ts';

export type RelayOwner = {
  /** The final head may pass and is being sent. */
  onHead(head: ResponseHead): void;
  onPiece(bytes: number): void;
  /** Anything else arrived from the upstream. */
  onLife(): void;
  /** The client has not read buffered data for too long. */
  onStall(): void;
  /** The response must not pass. */
  onRefused(refusal: Refusal): void;
  /** The upstream ended an incomplete response without an error. */
  onTruncated(): void;
  /** An internal error. */
  onBug(error: unknown): void;
};

export type RelayOptions = {
  readonly plan: RequestPlan;
  readonly hasBody: boolean;
  readonly limits: HeadLimits;
  readonly clientIdleMs: number;
};

export class StreamRelay {
  /** The final head was sent: from here on nothing can be refused, only reset. */
  hasResponded = false;
  /** The response has arrived completely. */
  isComplete = false;
  /** The end of the response, or its trailers, are unsent. */
  isEndDue = false;
  /** Bytes of the body. */
  bytes = 0;
  readonly #stream: ServerHttp2Stream;
  readonly #options: RelayOptions;
  readonly #owner: RelayOwner;
  #mask: Mask | undefined;
  #bodyMask: BodyMask | undefined;
  #session: UpstreamSession | undefined;
  #interims = 0;
  #interimBytes = 0;
  #announcedBytes: number | undefined;
  #trailers: HeaderList = [];
  #stall: IdleLimit | undefined;
  /** Bytes that wait for the client. */
  #waiting = 0;

  constructor(stream: ServerHttp2Stream, options: RelayOptions, owner: RelayOwner) {
    this.#stream = stream;
    this.#options = options;
    this.#owner = owner;
  }

  /** Relays `upstream`, a stream of `session`, and masks what `masks` contains. */
  follow(
    upstream: ClientHttp2Stream,
    session: UpstreamSession,
    masks: Pick<GateDecision, 'mask' | 'bodyMask'>,
  ): void {
    const end = new StreamEnd(upstream);
    this.#session = session;
    this.#mask = masks.mask;
    this.#bodyMask = masks.bodyMask && new BodyMask(masks.bodyMask);
    upstream.on('headers', (_, _flags, raw) => this.#guard(() => this.#onInterim(raw)));
    upstream.on('response', (_, flags, raw) => this.#guard(() => this.#onHead(flags, raw, upstream, end)));
    upstream.on('trailers', (_, _flags, raw) => this.#guard(() => this.#onTrailers(raw)));
  }

  /** Ranges of the body that were masked. */
  get scrubbed(): number {
    return this.#bodyMask?.ranges ?? 0;
  }

  /** Whether the upstream waits for the client. */
  get isHeld(): boolean {
    return this.#stall !== undefined;
  }

  stop(): void {
    this.#stall?.stop();
    this.#stall = undefined;
  }

  /** Calls `act` after the end of the response was sent: an earlier reset would discard the end. */
  afterEnd(act: () => void): void {
    if (this.isEndDue) this.#stream.once('wantTrailers', () => setImmediate(act));
    else setImmediate(act);
  }

  #onInterim(raw: HeaderList): void {
    if (this.hasResponded || this.#stream.closed) return;
    const block = this.#parse(raw);
    if (!block) return;
    const { status, end } = block.head;
    this.#owner.onLife();
    this.#interims += 1;
    this.#interimBytes += end;
    if (this.#interims > MAX_INTERIM_RESPONSES || this.#interimBytes > MAX_INTERIM_BYTES)
      return this.#refuse('too_many_interim_responses');
    if (status === 101) return this.#refuse('unasked_101');
    // An unexpected 100 would confuse some clients.
    if (status === 100 && !this.#awaitsContinue) return;
    this.#stream.additionalHeaders({ ...byName(outgoingFields(block, this.#mask)), ':status': status });
  }

  /** An HTTP/2 body needs no length, and the plan, which reads HTTP/1.1 heads, must not see one. */
  get #awaitsContinue(): boolean {
    const { plan, hasBody } = this.#options;
    return hasBody && expectsContinue(plan.head) === true;
  }

  #onHead(flags: number, raw: HeaderList, upstream: ClientHttp2Stream, end: StreamEnd): void {
    if (this.hasResponded || this.#stream.closed) return;
    const block = this.#parse(raw);
    if (!block) return;
    const { head } = block;
    const hasBody = (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0 && !this.#hasNoBody(head);
    const refused =
      rejectResponse(head) ?? (hasBody && this.#bodyMask ? refuseUnsearchable(head) : undefined);
    if (refused) return this.#owner.onRefused(refused);
    const fields = outgoingFields(block, this.#mask);
    this.#owner.onHead(head);
    this.#announcedBytes = contentLength(head);
    this.hasResponded = true;
    sendHead(this.#stream, head.status, fields, { endStream: !hasBody, waitForTrailers: hasBody });
    if (hasBody) this.#relay(upstream, end);
    else this.isComplete = true;
  }

  #hasNoBody({ status }: ResponseHead): boolean {
    return this.#options.plan.head.method === 'HEAD' || status === 204 || status === 205 || status === 304;
  }

  #relay(upstream: ClientHttp2Stream, end: StreamEnd): void {
    const stream = this.#stream;
    this.isEndDue = true;
    const writer = new TurnWriter((pieces) => {
      // If the upstream has closed, the rest is buffered here and would be lost with its connection.
      if (writeAll(stream, pieces)) return;
      this.#hold();
      if (!this.#session?.hasEnded) upstream.pause();
    });
    const add = (piece: Buffer): void => writer.add(piece);
    const body = this.#bodyMask;
    upstream.on('data', (chunk: Buffer) => {
      this.bytes += chunk.length;
      this.#owner.onPiece(chunk.length);
      if (body) body.push(chunk, add);
      else writer.add(chunk);
    });
    upstream.on('end', () => {
      const isShort = this.#announcedBytes !== undefined && this.#announcedBytes !== this.bytes;
      const isComplete = end.isComplete && !isShort;
      // A response that broke off must not end with the possible beginning of a secret.
      if (isComplete) body?.end(add);
      writer.flush();
      if (isComplete) {
        this.isComplete = true;
        stream.end();
        this.#hold();
      } else if (upstream.rstCode === constants.NGHTTP2_NO_ERROR) this.#owner.onTruncated();
      // Otherwise 'close' follows, with the code of the reset.
    });
    stream.on('drain', () => {
      this.stop();
      upstream.resume();
    });
    // Also requested when a reset ends the stream: then trailers would be too late.
    stream.once('wantTrailers', () => {
      this.isEndDue = false;
      if (stream.closed || stream.destroyed) return;
      this.#guard(() => stream.sendTrailers(byName(this.#trailers)));
    });
  }

  /** Buffered data may leave slowly; without progress there is a limit. */
  #hold(): void {
    this.#waiting = this.#stream.writableLength;
    this.#stall ??= new IdleLimit(this.#options.clientIdleMs, () => {
      if (this.#stream.writableLength === this.#waiting) return this.#owner.onStall();
      this.#waiting = this.#stream.writableLength;
      this.#stall?.restart();
    });
  }

  #onTrailers(raw: HeaderList): void {
    this.#owner.onLife();
    const block = parseTrailerList(raw, this.#options.limits);
    if (isHeadError(block)) return this.#refuse(block.code);
    this.#trailers = outgoingFields(block, this.#mask, isNoTrailer);
  }

  #parse(raw: HeaderList): ResponseBlock | undefined {
    const block = parseResponseList(raw, this.#options.limits);
    if (!isHeadError(block)) return block;
    this.#refuse(block.code);
    return undefined;
  }

  #refuse(cause: string): void {
    this.#owner.onRefused(refuse('upstream_malformed', cause));
  }

  /** An internal error ends this stream only; the process and the other streams go on. */
  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#owner.onBug(error);
    }
  }
}

function contentLength(head: ResponseHead): number | undefined {
  const at = findField(head, Field.contentLength);
  return at === -1 ? undefined : Number(fieldValue(head, at));
}

/**
 * How an upstream stream ended. node:http2 emits 'end' for END_STREAM and for RST_STREAM(NO_ERROR), and later events do not
 * distinguish them. On a reset the stream is closed before push(null).
 */
class StreamEnd {
  /** The upstream has sent END_STREAM. */
  isComplete = false;

  /** Must be created before the stream is read. */
  constructor(stream: ClientHttp2Stream) {
    const push = stream.push.bind(stream);
    stream.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
      if (chunk === null && !stream.closed) this.isComplete = true;
      return push(chunk, encoding);
    };
  }
}
