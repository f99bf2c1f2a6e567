// Relays a request body from the client's HTTP/2 stream to the upstream's, with back-pressure. The start of the body is
// buffered until the upstream responds, so that a request that the upstream declared unprocessed can be retried.
import type { ClientHttp2Stream, ServerHttp2Stream } from 'node:http2';
import { countForwarded } from '../forwarded-pieces.ts';
import { TurnWriter, writeAll } from './turn-writer.ts';

/** Requests with a longer body are not retried. Most requests to model APIs fit. */
const MAX_RETRY_BYTES = 65_536;
/** Each buffered piece has an overhead, however few bytes it holds. */
const MAX_RETRY_PIECES = 64;

export type BodyOwner = {
  /** A piece of this length has arrived. It may be sent to the upstream much later. */
  onBody(bytes: number): void;
  /** An internal error. */
  onBug(error: unknown): void;
};

export class StreamBody {
  /** Bytes that were read from the client's stream. */
  bytes = 0;
  /** The client has sent the whole body (END_STREAM). */
  isComplete = false;
  readonly #stream: ServerHttp2Stream;
  readonly #owner: BodyOwner;
  #upstream: ClientHttp2Stream | undefined;
  /** What a retry sends first; undefined: a retry is not possible. */
  #retryBuffer: Buffer[] | undefined = [];
  #hasBegun = false;
  readonly #writer: TurnWriter;

  constructor(stream: ServerHttp2Stream, owner: BodyOwner) {
    this.#stream = stream;
    this.#owner = owner;
    this.#writer = new TurnWriter(
      (pieces) => this.#pass(pieces),
      (error) => owner.onBug(error),
    );
    const push = stream.push.bind(stream);
    stream.push = (piece: Buffer | null, encoding?: BufferEncoding): boolean => {
      if (piece) this.#guard(this.#onPiece, piece.length);
      return push(piece, encoding);
    };
    // Attached at once: the stream of an empty body emits 'end' before anything is read.
    stream.on('end', () => this.#guard(this.#onEnd, undefined));
    // After a reset without an error node:http2 waits for 'end', which a stream that is not read never emits.
    stream.on('aborted', () => stream.resume());
  }

  /** Everything that was sent is still buffered, so another upstream stream can get the whole body. */
  get isRetryable(): boolean {
    return this.#retryBuffer !== undefined && this.bytes <= MAX_RETRY_BYTES;
  }

  /** Sends the buffered bytes, including those that an earlier upstream stream got, and all later ones to `upstream`. */
  sendTo(upstream: ClientHttp2Stream): void {
    this.#upstream = upstream;
    upstream.on('drain', () => this.#stream.resume());
    upstream.once('close', () => this.#pauseAfter(upstream));
    for (const piece of this.#retryBuffer ?? []) upstream.write(piece);
    if (this.#hasBegun) this.#stream.resume();
    else this.#begin();
    if (this.isComplete) upstream.end();
  }

  /** The upstream has processed the request, so it is not retried. */
  dropRetryBuffer(): void {
    this.#retryBuffer = undefined;
  }

  /** Sends nothing more. Further bytes are read and dropped, because a stream that is not read does not close. */
  stop(): void {
    this.#upstream = undefined;
    this.dropRetryBuffer();
    this.#stream.resume();
  }

  #begin(): void {
    this.#hasBegun = true;
    this.#stream.on('data', (piece: Buffer) => this.#guard(this.#onData, piece));
  }

  #onPiece(bytes: number): void {
    this.#owner.onBody(bytes);
  }

  #onData(piece: Buffer): void {
    this.bytes += piece.length;
    countForwarded(piece.length);
    this.#writer.add(piece);
  }

  #pass(pieces: readonly Buffer[]): void {
    for (const piece of pieces) this.#buffer(piece);
    if (this.#upstream && !writeAll(this.#upstream, pieces)) this.#stream.pause();
  }

  #onEnd(): void {
    // A stream that was reset emits 'end' too. A truncated body must not reach the upstream as a complete one.
    if (this.#stream.closed || this.#stream.aborted) return;
    this.#writer.flush();
    this.isComplete = true;
    this.#upstream?.end();
  }

  /** Pauses until the next upstream stream exists: further bytes could exceed the retry buffer and prevent the retry. */
  #pauseAfter(upstream: ClientHttp2Stream): void {
    if (this.#upstream !== upstream) return;
    this.#upstream = undefined;
    this.#stream.pause();
  }

  #buffer(piece: Buffer): void {
    this.#retryBuffer?.push(piece);
    const isOverLimit = this.bytes > MAX_RETRY_BYTES || (this.#retryBuffer?.length ?? 0) > MAX_RETRY_PIECES;
    if (isOverLimit) this.#retryBuffer = undefined;
  }

  /** Nothing else catches what is thrown in a listener: it would end the process. */
  #guard<T>(act: (about: T) => void, about: T): void {
    try {
      act.call(this, about);
    } catch (error) {
      this.#owner.onBug(error);
    }
  }
}
