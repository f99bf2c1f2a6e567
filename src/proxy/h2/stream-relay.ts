// A response over HTTP/2 from the upstream's stream to the client's: interim heads, head, body with back-pressure, trailers.
// The relay knows what may pass and when the response is complete. Its owner decides about responses that may not pass or
// break off.
import { type ClientHttp2Stream, type ServerHttp2Stream, constants } from 'node:http2';
import { expectsContinue } from '../../http1/expect.ts';
import { isHeadError } from '../../http1/head-error.ts';
import { Field } from '../../http1/field-name.ts';
import { type HeadLimits, type ResponseHead, fieldValue, findField } from '../../http1/head-parser.ts';
import { countForwarded } from '../forwarded-pieces.ts';
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
import { ResponseWriter, type WriterOwner } from './response-writer.ts';
import { hasEnd, noteEnd } from './stream-end.ts';
import { sendHead } from './stream-response.ts';
import type { UpstreamSession } from '../upstream/h2-session.ts';

const NO_BYTES = Buffer.alloc(0);

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

export class StreamRelay implements WriterOwner {
  /** The final head was sent: from here on nothing can be refused, only reset. */
  hasResponded = false;
  /** The response has arrived completely. */
  isComplete = false;
  /** Bytes of the body. */
  bytes = 0;
  readonly #stream: ServerHttp2Stream;
  readonly #options: RelayOptions;
  readonly #owner: RelayOwner;
  readonly #writer: ResponseWriter;
  #mask: Mask | undefined;
  #bodyMask: BodyMask | undefined;
  #session: UpstreamSession | undefined;
  #upstream: ClientHttp2Stream | undefined;
  #interims = 0;
  #interimBytes = 0;
  #announcedBytes: number | undefined;
  #trailers: HeaderList | undefined;

  constructor(stream: ServerHttp2Stream, options: RelayOptions, owner: RelayOwner) {
    this.#stream = stream;
    this.#options = options;
    this.#owner = owner;
    this.#writer = new ResponseWriter(stream, options.clientIdleMs, this);
  }

  /** Relays `upstream`, a stream of `session`, and masks what `masks` contains. */
  follow(
    upstream: ClientHttp2Stream,
    session: UpstreamSession,
    masks: Pick<GateDecision, 'mask' | 'bodyMask'>,
  ): void {
    noteEnd(upstream);
    this.#upstream = upstream;
    this.#session = session;
    this.#mask = masks.mask;
    this.#bodyMask = masks.bodyMask && new BodyMask(masks.bodyMask);
    upstream.on('headers', (_, _flags, raw) => this.#guard(this.#onInterim, raw, 0));
    upstream.on('response', (_, flags, raw) => this.#guard(this.#onHead, raw, flags));
    upstream.on('trailers', (_, _flags, raw) => this.#guard(this.#onTrailers, raw, 0));
  }

  /** The upstream has begun to process the request, and has not responded yet. */
  get hasOnlyInterims(): boolean {
    return !this.hasResponded && this.#interims > 0;
  }

  /** Ranges of the body that were masked. */
  get scrubbed(): number {
    return this.#bodyMask?.ranges ?? 0;
  }

  /** Whether the upstream waits for the client. */
  get isHeld(): boolean {
    return this.#writer.isHeld;
  }

  /** The end of the response, or its trailers, are unsent. */
  get isEndDue(): boolean {
    return this.#writer.isEndDue;
  }

  /** The end of the response was sent before the client's stream was closed. */
  get hasSentEnd(): boolean {
    return this.isComplete && this.#writer.hasSentEnd;
  }

  /** The client has been sent as many bytes as were announced: only the end is missing. */
  get hasAllBytes(): boolean {
    return this.isComplete || this.#announcedBytes === this.bytes;
  }

  tick(nowMs: number): void {
    this.#writer.tick(nowMs);
  }

  /** Sends what waits for the end of the turn. */
  flush(): void {
    this.#writer.flush();
  }

  stop(): void {
    this.#writer.stop();
  }

  /** Calls `act` after the end of the response was sent: an earlier reset would discard the end. */
  afterEnd(act: () => void): void {
    this.#writer.afterEnd(act);
  }

  onBlocked(): void {
    // If the upstream has closed, the rest is buffered here and would be lost with its connection.
    if (!this.#session?.hasEnded) this.#upstream?.pause();
  }

  onDrained(): void {
    this.#upstream?.resume();
  }

  onStall(): void {
    this.#owner.onStall();
  }

  onBug(error: unknown): void {
    this.#owner.onBug(error);
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

  #onHead(raw: HeaderList, flags: number): void {
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
    if (hasBody) {
      const isLast = this.#announcedBytes === 0;
      this.#writer.begin(head.status, fields, { isLast, mayHaveTrailers: this.#mayHaveTrailers(head) });
      this.#relay();
    } else {
      this.isComplete = true;
      sendHead(this.#stream, head.status, fields, 'whole');
    }
  }

  #hasNoBody({ status }: ResponseHead): boolean {
    return this.#options.plan.head.method === 'HEAD' || status === 204 || status === 205 || status === 304;
  }

  /** Behind an announced length they pass only if the client asked for trailers or the host announced them. */
  #mayHaveTrailers(head: ResponseHead): boolean {
    if (this.#announcedBytes === undefined || findField(head, Field.trailer) !== -1) return true;
    return findField(this.#options.plan.head, Field.te) !== -1;
  }

  #relay(): void {
    const upstream = this.#upstream;
    if (!upstream) return;
    const writer = this.#writer;
    const body = this.#bodyMask;
    const add = (piece: Buffer): void => writer.add(piece, this.hasAllBytes);
    const onData = (chunk: Buffer): void => {
      this.bytes += chunk.length;
      countForwarded(chunk.length);
      this.#owner.onPiece(chunk.length);
      if (body) body.push(chunk, add);
      else writer.add(chunk, this.hasAllBytes);
    };
    const onEnd = (): void => {
      const isShort = this.#announcedBytes !== undefined && this.#announcedBytes !== this.bytes;
      const isComplete = hasEnd(upstream) && !isShort;
      // A response that broke off must not end with the possible beginning of a secret.
      if (isComplete) body?.end(add);
      if (isComplete) return this.#complete();
      writer.flush();
      if (upstream.rstCode === constants.NGHTTP2_NO_ERROR) this.#owner.onTruncated();
      // Otherwise 'close' follows, with the code of the reset.
    };
    upstream.on('data', (chunk: Buffer) => this.#guardRead(onData, chunk));
    upstream.on('end', () => this.#guardRead(onEnd, NO_BYTES));
  }

  #complete(): void {
    this.isComplete = true;
    this.#writer.end(this.#trailers);
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
  #guardRead(act: (chunk: Buffer) => void, chunk: Buffer): void {
    try {
      act(chunk);
    } catch (error) {
      this.#owner.onBug(error);
    }
  }

  #guard(act: (raw: HeaderList, flags: number) => void, raw: HeaderList, flags: number): void {
    try {
      act.call(this, raw, flags);
    } catch (error) {
      this.#owner.onBug(error);
    }
  }
}

function contentLength(head: ResponseHead): number | undefined {
  const at = findField(head, Field.contentLength);
  return at === -1 ? undefined : Number(fieldValue(head, at));
}
