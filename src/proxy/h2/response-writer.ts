// Writes a response to the client's stream, with back-pressure. A response that arrives completely in one turn of the event
// loop leaves in one write. The last of the announced bytes wait for the end of the response: many clients reset a stream
// that has all bytes and no end, and node:http2 counts a reset stream as open until the end of the turn.
import type { ServerHttp2Stream } from 'node:http2';
import { joinPieces } from '../forwarded-pieces.ts';
import type { HeaderList } from '../upstream/h2-session.ts';
import { byName } from './header-block.ts';
import { IdleLimit } from './idle-limit.ts';
import { StreamCode } from './stream-code.ts';
import { sendHead } from './stream-response.ts';
import { type TurnEndListener, awaitTurnEnd } from './turn-end.ts';
import { writeAll } from './turn-writer.ts';

export type WriterOwner = {
  /** The client takes no more for now: the upstream must wait. */
  onBlocked(): void;
  onDrained(): void;
  /** The client has not read buffered data for too long. */
  onStall(): void;
  /** An internal error. */
  onBug(error: unknown): void;
};

/** A larger part of a body does not wait for the end of the turn. */
const MAX_UNSENT_BYTES = 16_384;
const NO_FIELDS: HeaderList = Object.freeze([]);

export class ResponseWriter implements TurnEndListener {
  /** The end of the response, or its trailers, will be a frame of its own, which is unsent. */
  isEndDue = false;
  readonly #stream: ServerHttp2Stream;
  readonly #clientIdleMs: number;
  readonly #owner: WriterOwner;
  #status = 0;
  /** The fields of a head that is unsent, because the rest of the response may arrive in the same turn. */
  #unsentFields: HeaderList | undefined;
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #awaitsEnd = false;
  /** It did so at the tick before. */
  #hasAwaitedEnd = false;
  #trailers: HeaderList = NO_FIELDS;
  #stall: IdleLimit | undefined;
  /** Bytes that wait for the client. */
  #waiting = 0;
  #hasDrainListener = false;
  #mayHaveTrailers = true;
  /** The end was written with the last frame of the body. */
  #isEndInBody = false;

  constructor(stream: ServerHttp2Stream, clientIdleMs: number, owner: WriterOwner) {
    this.#stream = stream;
    this.#clientIdleMs = clientIdleMs;
    this.#owner = owner;
  }

  /** Whether the upstream waits for the client. */
  get isHeld(): boolean {
    return this.#stall !== undefined;
  }

  /**
   * Whether the end of the response was sent, once the stream is closed. node:http2 closes a stream with its last frame,
   * before it reports the write. A client that resets without an error at that moment is not distinguished.
   */
  get hasSentEnd(): boolean {
    const { writableFinished, rstCode } = this.#stream;
    return writableFinished || (this.#isEndInBody && rstCode === StreamCode.noError);
  }

  /**
   * The head of a response with a body. `isLast`: it announces no bytes. Without `mayHaveTrailers` it must announce its
   * length: a reset may then look like an end, and a client must see by the length that the body is cut.
   */
  begin(
    status: number,
    fields: HeaderList,
    form: { readonly isLast: boolean; readonly mayHaveTrailers: boolean },
  ): void {
    this.#status = status;
    this.#unsentFields = fields;
    this.#awaitsEnd = form.isLast;
    this.#mayHaveTrailers = form.mayHaveTrailers;
    awaitTurnEnd(this);
  }

  /** `isLast`: with this piece, as many bytes have arrived as were announced. */
  add(piece: Buffer, isLast: boolean): void {
    this.#pieceBytes += piece.length;
    const count = this.#pieces.push(piece);
    this.#awaitsEnd = isLast;
    if (isLast) return;
    if (!this.#unsentFields) {
      if (count === 1) process.nextTick(flushGuarded, this);
    } else if (this.#pieceBytes >= MAX_UNSENT_BYTES) this.flush();
  }

  onTurnEnd(): void {
    if (this.#unsentFields && !this.#awaitsEnd) this.flushGuarded();
  }

  /** At the end of a turn nothing catches what is thrown: it would end the process. */
  flushGuarded(): void {
    try {
      this.flush();
    } catch (error) {
      this.#owner.onBug(error);
    }
  }

  /** Sends what is unsent, before the end of the turn. */
  flush(): void {
    const fields = this.#unsentFields;
    const pieces = this.#takeUnsent();
    if (this.#isClosed) return;
    if (fields && this.#mayHaveTrailers) this.#sendHeadOfTrailers(fields);
    else if (fields) sendHead(this.#stream, this.#status, fields, 'with body');
    if (pieces.length === 0 || writeAll(this.#stream, pieces)) return;
    this.#watchProgress();
    if (!this.#hasDrainListener) this.#stream.on('drain', () => this.#onDrain());
    this.#hasDrainListener = true;
    this.#owner.onBlocked();
  }

  /** The response is complete. */
  end(trailers: HeaderList = NO_FIELDS): void {
    const isHeadUnsent = this.#unsentFields !== undefined;
    if (this.#mayHaveTrailers && (!isHeadUnsent || trailers.length > 0)) {
      this.#trailers = trailers;
      this.flush();
      this.#stream.end();
    } else this.#sendRest(this.#unsentFields);
    this.#watchProgress();
  }

  /** Calls `act` after the end of the response was sent: an earlier reset would discard the end. */
  afterEnd(act: () => void): void {
    const stream = this.#stream;
    if (this.isEndDue) stream.once('wantTrailers', () => setImmediate(act));
    else if (stream.writableEnded && !stream.writableFinished) stream.once('finish', () => setImmediate(act));
    else setImmediate(act);
  }

  tick(nowMs: number): void {
    // The host sends the end late, or never. Not at the first tick, which may come right after the last bytes: while the
    // process is busy, all streams of a client would be reset by one tick.
    if (this.#awaitsEnd && this.#hasAwaitedEnd) this.flush();
    this.#hasAwaitedEnd = this.#awaitsEnd;
    if (this.#stall?.hasPassed(nowMs) !== true) return;
    // Buffered data may leave slowly; without progress there is a limit.
    if (this.#stream.writableLength === this.#waiting) return this.#owner.onStall();
    this.#watchProgress();
  }

  /** Sends nothing more. */
  stop(): void {
    this.#takeUnsent();
    this.#stall = undefined;
  }

  /** What is unsent, with the end in its last frame. */
  #sendRest(fields: HeaderList | undefined): void {
    const stream = this.#stream;
    const pieces = this.#takeUnsent();
    if (this.#isClosed) return;
    this.#isEndInBody = true;
    const last = pieces.length - 1;
    if (fields) sendHead(stream, this.#status, fields, last < 0 ? 'whole' : 'with body');
    for (let i = 0; i < last; i += 1) stream.write(pieces[i]);
    if (last >= 0 || !fields) stream.end(pieces[last]);
  }

  #sendHeadOfTrailers(fields: HeaderList): void {
    const stream = this.#stream;
    this.isEndDue = true;
    // Also requested when a reset ends the stream: then trailers would be too late.
    stream.on('wantTrailers', () => {
      this.isEndDue = false;
      if (!this.#isClosed) this.#sendTrailers();
    });
    sendHead(stream, this.#status, fields, 'with trailers');
  }

  #sendTrailers(): void {
    try {
      this.#stream.sendTrailers(byName(this.#trailers));
    } catch (error) {
      this.#owner.onBug(error);
    }
  }

  get #isClosed(): boolean {
    return this.#stream.closed || this.#stream.destroyed;
  }

  #takeUnsent(): readonly Buffer[] {
    const pieces = this.#pieces;
    this.#unsentFields = undefined;
    this.#awaitsEnd = false;
    if (pieces.length === 0) return pieces;
    this.#pieces = [];
    this.#pieceBytes = 0;
    return joinPieces(pieces);
  }

  #onDrain(): void {
    this.#stall = undefined;
    this.#owner.onDrained();
  }

  #watchProgress(): void {
    this.#waiting = this.#stream.writableLength;
    this.#stall ??= new IdleLimit(this.#clientIdleMs);
    this.#stall.refresh();
  }
}

function flushGuarded(writer: ResponseWriter): void {
  writer.flushGuarded();
}
