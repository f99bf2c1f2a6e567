// Parses the trailers of a chunked body to their blank line, byte by byte over any split. Trailers are validated and
// dropped.
import { byteAt, CR, classAt, COLON, FIELD_VALUE, LF, lowerAt, TOKEN } from './byte-class.ts';
import { type HeadError, headErrors } from './head-error.ts';

const MAX_TRAILER_BYTES = 8192;
const UNDERSCORE_BYTE = 0x5f;
const HYPHEN_BYTE = 0x2d;
// A framing field in a trailer is only read by a hop that merges trailers into the head (RFC 9110 §6.5.1).
const framingNames: readonly string[] = ['content-length', 'transfer-encoding'];

const LINE_START = 0;
const NAME = 1;
const VALUE = 2;
const LINE_LF = 3;
const LAST_LF = 4;
const DONE = 5;

export class TrailerWalker {
  #state = LINE_START;
  #bytesRead = 0;
  #column = 0;
  /** Bit k stays set while the name read so far is a prefix of framingNames[k]. */
  #candidates = 0;
  #error: HeadError | undefined;

  /** True once the blank line is consumed. */
  get done(): boolean {
    return this.#state === DONE;
  }

  get error(): HeadError | undefined {
    return this.#error;
  }

  /** Consumes trailer bytes from `from`; returns the index after the last one consumed. */
  walk(bytes: Buffer, from: number): number {
    let at = from;
    while (at < bytes.length && this.#state !== DONE && this.#error === undefined) {
      this.#bytesRead++;
      this.#error = this.#bytesRead > MAX_TRAILER_BYTES ? headErrors.trailerTooLarge : this.#step(bytes, at);
      at++;
    }
    return at;
  }

  #step(bytes: Buffer, at: number): HeadError | undefined {
    const byte = byteAt(bytes, at);
    switch (this.#state) {
      case LINE_START:
        this.#column = 0;
        this.#candidates = (1 << framingNames.length) - 1;
        return byte === CR ? this.#enter(LAST_LF) : this.#readName(bytes, at);
      case NAME:
        return byte === COLON ? this.#finishName() : this.#readName(bytes, at);
      case VALUE:
        if (byte === CR) return this.#enter(LINE_LF);
        return (classAt(bytes, at) & FIELD_VALUE) === 0 ? headErrors.trailerMalformed : undefined;
      case LINE_LF:
        return byte === LF ? this.#enter(LINE_START) : headErrors.trailerMalformed;
      default:
        return byte === LF ? this.#enter(DONE) : headErrors.trailerMalformed;
    }
  }

  #enter(state: number): undefined {
    this.#state = state;
  }

  #readName(bytes: Buffer, at: number): HeadError | undefined {
    if ((classAt(bytes, at) & TOKEN) === 0) return headErrors.trailerMalformed;
    const lower = lowerAt(bytes, at);
    const byte = lower === UNDERSCORE_BYTE ? HYPHEN_BYTE : lower;
    for (let k = 0; k < framingNames.length; k++) {
      if (framingNames[k]?.charCodeAt(this.#column) !== byte) this.#candidates &= ~(1 << k);
    }
    this.#column++;
    return this.#enter(NAME);
  }

  #finishName(): HeadError | undefined {
    for (let k = 0; k < framingNames.length; k++) {
      const isComplete = framingNames[k]?.length === this.#column;
      if (isComplete && (this.#candidates & (1 << k)) !== 0) return headErrors.trailerHasFraming;
    }
    return this.#enter(VALUE);
  }
}
