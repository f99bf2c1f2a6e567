// An answer over HTTP/2 on its way from the host's stream to the client's: interim heads, the head, the body at the pace
// of the client, the trailers. It knows what may pass and when all has passed; what becomes of an answer that may not, or
// that breaks off, is its owner's to say.
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
import { Silence } from './idle-limit.ts';
import { sendHead } from './stream-response.ts';
import { StreamEnd } from './stream-end.ts';
import { TurnWriter, writeAll } from './turn-writer.ts';
import type { UpstreamSession } from '../upstream/h2-session.ts';

export type RelayOwner = {
  /** The final head may pass, and does so now. */
  onHead(head: ResponseHead): void;
  onPiece(bytes: number): void;
  /** The host has said something else. */
  onLife(): void;
  /** The client has not taken for long what waits for it. */
  onStall(): void;
  /** What the host said may not pass. */
  onRefused(refusal: Refusal): void;
  /** The host ended its answer without an error before all of it was there. */
  onTruncated(): void;
  /** Something on the way threw. */
  onBug(error: unknown): void;
};

export type RelayOptions = {
  readonly plan: RequestPlan;
  readonly hasBody: boolean;
  readonly limits: HeadLimits;
  readonly clientIdleMs: number;
};

export class StreamRelay {
  /** The final head has left: from here on nothing can be refused, only reset. */
  hasResponded = false;
  /** All of the answer is there. */
  isWhole = false;
  /** The end of the answer, or its trailers, have not left yet. */
  isEndDue = false;
  /** Bytes of body. */
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
  #stall: Silence | undefined;
  /** Bytes that wait for the client. */
  #waiting = 0;

  constructor(stream: ServerHttp2Stream, options: RelayOptions, owner: RelayOwner) {
    this.#stream = stream;
    this.#options = options;
    this.#owner = owner;
  }

  /** Relays what `upstream`, a stream of `session`, says, with what `masks` names hidden. */
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

  /** Places in the body where a secret was masked. */
  get scrubbed(): number {
    return this.#bodyMask?.ranges ?? 0;
  }

  /** The host is made to wait for the client. */
  get isHeld(): boolean {
    return this.#stall !== undefined;
  }

  stop(): void {
    this.#stall?.stop();
    this.#stall = undefined;
  }

  /** Calls `act` behind the end of the answer: a reset before it would take that with it. */
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
    // A 100 that nobody asked for would confuse some.
    if (status === 100 && !this.#awaitsContinue) return;
    this.#stream.additionalHeaders({ ...byName(outgoingFields(block, this.#mask)), ':status': status });
  }

  /** A body needs no length here, so that the plan, which reads heads as HTTP/1.1, may not know of it. */
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
    else this.isWhole = true;
  }

  #hasNoBody({ status }: ResponseHead): boolean {
    return this.#options.plan.head.method === 'HEAD' || status === 204 || status === 205 || status === 304;
  }

  #relay(upstream: ClientHttp2Stream, end: StreamEnd): void {
    const stream = this.#stream;
    this.isEndDue = true;
    const writer = new TurnWriter((pieces) => {
      // Of a host that has left the rest is here already, and would be lost with its connection.
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
      const isWhole = end.isWhole && !isShort;
      // What broke off shows nothing that may be the beginning of a secret.
      if (isWhole) body?.end(add);
      writer.flush();
      if (isWhole) {
        this.isWhole = true;
        stream.end();
        this.#hold();
      } else if (upstream.rstCode === constants.NGHTTP2_NO_ERROR) this.#owner.onTruncated();
      // Else `close` follows, with the code of the reset.
    });
    stream.on('drain', () => {
      this.stop();
      upstream.resume();
    });
    // Asked for as well when a reset ends the stream: then they would be too late.
    stream.once('wantTrailers', () => {
      this.isEndDue = false;
      if (stream.closed || stream.destroyed) return;
      this.#guard(() => stream.sendTrailers(byName(this.#trailers)));
    });
  }

  /** What waits may leave slowly; what does not leave at all has a limit. */
  #hold(): void {
    this.#waiting = this.#stream.writableLength;
    this.#stall ??= new Silence(this.#options.clientIdleMs, () => {
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

  /** A bug ends this stream; neither the process nor the other streams hear of it. */
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
