// Parses a chunked body as it streams and re-emits it canonically: no leading zeros, no extensions, no trailers
// (RFC 9112 §7.1). Upper-case hex sizes are forwarded unchanged, because all parsers read them alike. The state is a few
// numbers, data is never copied, and bytes that are already canonical are emitted in one piece.
import { byteAt, CR, hexValue, LF, SEMICOLON } from './byte-class.ts';
import {
  EXTENSION_MALFORMED,
  EXTENSION_START,
  mayEndExtension,
  nextExtensionState,
} from './chunk-extension.ts';
import { type HeadError, headErrors } from './head-error.ts';
import { TrailerWalker } from './trailer-walker.ts';

const SIZE = 0;
const EXTENSION = 1;
const SIZE_LF = 2;
const DATA = 3;
const DATA_CR = 4;
const DATA_LF = 5;
const TRAILERS = 6;
const DONE = 7;

const MAX_SIZE_DIGITS = 16;
const MAX_EXTENSION_BYTES = 256;
const LAST_CHUNK = '0\r\n\r\n';
/** The chunk head in progress began in an earlier buffer. */
const EARLIER = -1;

export type Emit = (piece: Buffer) => void;

export class ChunkWalker {
  readonly #isRequest: boolean;
  readonly #isBare: boolean;
  #state = SIZE;
  #error: HeadError | undefined;
  #size = 0;
  #digits = 0;
  /** The chunk head so far may be forwarded unchanged. */
  #canonical = true;
  #extension = EXTENSION_START;
  #extensionBytes = 0;
  #remaining = 0;
  #trailers: TrailerWalker | undefined;
  /** The index in the current buffer of the first byte that is still to be emitted unchanged. */
  #runStart = 0;
  /** The index in it where the chunk head in progress begins. It is emitted only when whole, the last with its trailers. */
  #headStart = 0;

  /** With `isBare` only the data is emitted, for a caller that frames it again. */
  constructor(kind: 'request' | 'response', isBare = false) {
    this.#isRequest = kind === 'request';
    this.#isBare = isBare;
  }

  /** True once the last chunk, its trailers and their blank line are consumed. */
  get done(): boolean {
    return this.#state === DONE;
  }

  /** What is wrong with the body; after an error nothing is consumed or emitted. */
  get error(): HeadError | undefined {
    return this.#error;
  }

  /**
   * Consumes `bytes` from `from` and emits what may be forwarded, data as subarrays of `bytes`. Returns the index after
   * the last byte consumed, which is before the end only when done or after an error.
   */
  walk(bytes: Buffer, from: number, emit: Emit): number {
    this.#runStart = from;
    this.#headStart = this.#state === SIZE && this.#digits === 0 ? from : EARLIER;
    let at = from;
    while (at < bytes.length && this.#state !== DONE && this.#error === undefined) {
      if (this.#state === DATA) at = this.#passData(bytes, at, emit);
      else if (this.#state === TRAILERS) at = this.#walkTrailers(bytes, at, emit);
      else this.#error = this.#step(bytes, at++, emit);
    }
    if (this.#error === undefined && !this.#isBare)
      this.#emitRun(bytes, this.#isInHead() ? this.#headStart : at, emit);
    return at;
  }

  #step(bytes: Buffer, at: number, emit: Emit): HeadError | undefined {
    const byte = byteAt(bytes, at);
    switch (this.#state) {
      case SIZE:
        return this.#readSize(byte);
      case EXTENSION:
        return this.#readExtension(bytes, at);
      case SIZE_LF:
        return byte === LF ? this.#finishHead(bytes, at + 1, emit) : headErrors.chunkSizeMalformed;
      case DATA_CR:
        // A wrong size moves the boundary of the next message, so the data must end where the size says.
        return byte === CR ? this.#enter(DATA_LF) : headErrors.chunkEndMissing;
      default:
        return byte === LF ? this.#startHead(at + 1) : headErrors.chunkEndMissing;
    }
  }

  #startHead(at: number): undefined {
    this.#headStart = at;
    this.#size = 0;
    this.#digits = 0;
    this.#canonical = true;
    return this.#enter(SIZE);
  }

  #readSize(byte: number): HeadError | undefined {
    const value = hexValue(byte);
    if (value >= 0) return this.#readDigit(value);
    if (this.#digits === 0) return headErrors.chunkSizeMalformed;
    if (byte === CR) return this.#enter(SIZE_LF);
    // Whitespace, `0x`, a bare LF: parsers that skip them disagree with those that do not.
    if (byte !== SEMICOLON) return headErrors.chunkSizeMalformed;
    // No client needs extensions; attackers use them to hide bytes from one hop (CVE-2025-55315).
    if (this.#isRequest) return headErrors.chunkExtensionRefused;
    this.#canonical = false;
    this.#extension = EXTENSION_START;
    this.#extensionBytes = 1;
    return this.#enter(EXTENSION);
  }

  #readDigit(value: number): HeadError | undefined {
    if (this.#digits > 0 && this.#size === 0) {
      // Leading zeros: some upstreams pad sizes; a client that does is probing for a digit limit.
      if (this.#isRequest) return headErrors.chunkSizeMalformed;
      this.#canonical = false;
    }
    this.#digits++;
    this.#size = this.#size * 16 + value;
    const isTooLarge = this.#digits > MAX_SIZE_DIGITS || this.#size > Number.MAX_SAFE_INTEGER;
    return isTooLarge ? headErrors.chunkSizeTooLarge : undefined;
  }

  #readExtension(bytes: Buffer, at: number): HeadError | undefined {
    if (byteAt(bytes, at) === CR) {
      return mayEndExtension(this.#extension) ? this.#enter(SIZE_LF) : headErrors.chunkExtensionMalformed;
    }
    this.#extension = nextExtensionState(this.#extension, bytes, at);
    this.#extensionBytes++;
    const isOver = this.#extensionBytes > MAX_EXTENSION_BYTES;
    return isOver || this.#extension === EXTENSION_MALFORMED ? headErrors.chunkExtensionMalformed : undefined;
  }

  #finishHead(bytes: Buffer, past: number, emit: Emit): undefined {
    if (this.#size === 0) {
      this.#trailers = new TrailerWalker();
      return this.#enter(TRAILERS);
    }
    if (!this.#canonical || this.#headStart === EARLIER) {
      this.#replaceHead(bytes, past, `${this.#size.toString(16)}\r\n`, emit);
    }
    this.#remaining = this.#size;
    return this.#enter(DATA);
  }

  #passData(bytes: Buffer, at: number, emit: Emit): number {
    const taken = Math.min(this.#remaining, bytes.length - at);
    this.#remaining -= taken;
    if (this.#remaining === 0) this.#state = DATA_CR;
    if (this.#isBare) emit(bytes.subarray(at, at + taken));
    return at + taken;
  }

  #walkTrailers(bytes: Buffer, at: number, emit: Emit): number {
    const trailers = (this.#trailers ??= new TrailerWalker());
    const past = trailers.walk(bytes, at);
    this.#error = trailers.error;
    if (trailers.done) {
      // The canonical ending is the only valid one of five bytes.
      const isCanonical = this.#headStart !== EARLIER && past - this.#headStart === LAST_CHUNK.length;
      if (!isCanonical) this.#replaceHead(bytes, past, LAST_CHUNK, emit);
      this.#state = DONE;
    }
    return past;
  }

  /** Emits what is before the chunk head in progress, then `head` in place of it. */
  #replaceHead(bytes: Buffer, past: number, head: string, emit: Emit): void {
    if (this.#isBare) return;
    this.#emitRun(bytes, this.#headStart, emit);
    emit(Buffer.from(head, 'latin1'));
    this.#runStart = past;
  }

  #emitRun(bytes: Buffer, end: number, emit: Emit): void {
    const start = this.#runStart;
    if (end > start) emit(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end));
  }

  #isInHead(): boolean {
    const state = this.#state;
    return state === SIZE || state === EXTENSION || state === SIZE_LF || state === TRAILERS;
  }

  #enter(state: number): undefined {
    this.#state = state;
  }
}
