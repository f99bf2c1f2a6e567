// The body of a request as a stream that asks for no more than is consumed, with limits on its bytes and its time. The server
// can end it from outside (broken framing). Leaving it early does not end the connection: the response is still to go.
import type { Readable } from 'node:stream';
import { nextTurn } from '../steps.ts';
import { collectBody } from './collected-body.ts';
import type { RequestHead } from './request-head.ts';

export type RequestErrorKind =
  | 'too_large'
  | 'late'
  | 'malformed'
  | 'tiny_chunks'
  | 'head_too_large'
  | 'content_type'
  | 'client_gone';

/** Why a request did not arrive whole, or cannot be read. */
export class RequestError extends Error {
  override readonly name: string = 'RequestError';
  readonly kind: RequestErrorKind;

  constructor(kind: RequestErrorKind) {
    super(kind);
    this.kind = kind;
  }
}

type Source = {
  readonly head: Pick<RequestHead, 'hasBody' | 'contentLength'>;
  /** Called before the first byte is asked for: where a client waits for `100 Continue`, it is sent here. */
  readonly onWanted?: () => void;
  /** When the whole body must have arrived, on the clock of `performance.now()`; no limit when absent. */
  readonly lateAtMs?: number;
};

export type BodyTimes = {
  /** How long the client may take to send the next byte. */
  readonly idleMs: number;
  /** How long the whole body may take, the time that its consumer takes included. */
  readonly totalMs: number;
};

/** Iterate it, stream it, or take it whole by `collect` or `read`. All throw RequestError; one of them may be used, once. */
export class RequestBody implements AsyncIterable<Uint8Array> {
  readonly #stream: Readable;
  readonly #source: Source;
  readonly #pieces: Buffer[] = [];
  #error: RequestErrorKind | undefined;
  #wake: (() => void) | undefined;
  #isEnded: boolean;
  #isLeft = false;

  constructor(stream: Readable, source: Source) {
    this.#stream = stream;
    this.#source = source;
    this.#isEnded = !source.head.hasBody;
  }

  /** True once every byte was received. */
  get isComplete(): boolean {
    return this.#isEnded;
  }

  /** The consumer gets this error, now or when it asks for more. False when nobody will: the body was read, or left. */
  interrupt(kind: RequestErrorKind): boolean {
    if (this.#isEnded || this.#isLeft) return false;
    this.#error ??= kind;
    this.#wake?.();
    return true;
  }

  /** The whole body, in few pieces. One that announces too much is rejected before a byte of it is asked for. */
  async collect(maxBytes: number): Promise<readonly Uint8Array[]> {
    if (this.#source.head.contentLength > maxBytes) throw new RequestError('too_large');
    if (this.#isEnded) return [];
    return collectBody(this.#iterate(() => this.#restMs(), maxBytes));
  }

  /** As `collect`, in one piece. */
  async read(maxBytes: number): Promise<Buffer> {
    return Buffer.concat(await this.collect(maxBytes));
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    return this.#iterate(() => this.#restMs());
  }

  /** For a body that may take longer than those that are read whole. */
  stream({ idleMs, totalMs }: BodyTimes): AsyncGenerator<Uint8Array, void, undefined> {
    const lateAtMs = performance.now() + totalMs;
    return this.#iterate(() => Math.min(idleMs, lateAtMs - performance.now()));
  }

  /** Until the body must have arrived. */
  #restMs(): number {
    const { lateAtMs = Infinity } = this.#source;
    return lateAtMs - performance.now();
  }

  /** `waitMs` is how long the next bytes may take. */
  async *#iterate(
    waitMs: () => number,
    maxBytes: number = Infinity,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#isEnded) return;
    const stream = this.#stream;
    this.#source.onWanted?.();
    const take = (piece: Buffer): void => {
      this.#pieces.push(piece);
      stream.pause();
      this.#wake?.();
    };
    const end = (): void => {
      this.#isEnded = true;
      this.#wake?.();
    };
    const fail = (): void => void this.interrupt('client_gone');
    stream.on('data', take).on('end', end).on('error', fail).on('close', fail);
    // The client may have left before anybody listened; no event would come then.
    if (stream.destroyed) fail();
    try {
      let [count, bytes] = [0, 0];
      for (let piece = await this.#next(waitMs); piece !== undefined; piece = await this.#next(waitMs)) {
        count += 1;
        bytes += piece.length;
        if (this.#isChunked && count > TINY_FROM && bytes < TINY * count)
          throw new RequestError('tiny_chunks');
        // What one read of the socket brought can be ten thousand chunks, all of which are consumed in one turn otherwise.
        if (count % PIECES_A_TURN === 0) await nextTurn();
        if (bytes > maxBytes) throw new RequestError('too_large');
        yield piece;
      }
    } finally {
      this.#isLeft = true;
      stream.off('data', take).pause();
    }
  }

  /** The sizes of other pieces are those of the network, for which the client is not responsible. */
  get #isChunked(): boolean {
    return this.#source.head.contentLength === 0;
  }

  async #next(waitMs: () => number): Promise<Buffer | undefined> {
    while (this.#pieces.length === 0) {
      if (this.#error !== undefined) throw new RequestError(this.#error);
      if (this.#isEnded) return undefined;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const limit = setTimer(waitMs(), () => this.interrupt('late'));
      this.#stream.resume();
      await promise;
      clearTimeout(limit);
    }
    return this.#pieces.shift();
  }
}

/**
 * A chunk costs microseconds, however few bytes it has: a megabyte of one-byte chunks costs seconds. A client that sends
 * little because it has little, an event a second, ends before it has sent so many. A chunk may arrive in two pieces, which count.
 */
const TINY_FROM = 4_096;
const TINY = 8;
const PIECES_A_TURN = 256;

/** None without a limit: Node turns one that is too long for it into 1 ms. */
function setTimer(ms: number, onEnd: () => void): NodeJS.Timeout | undefined {
  return ms < MAX_TIMER_MS ? setTimeout(onEnd, Math.max(0, ms)) : undefined;
}

const MAX_TIMER_MS = 2 ** 31 - 1;
