// Masks secret values in a body while it is streamed, at the same length. The possible beginning of a value is held back
// until more bytes arrive or the body ends: a body that breaks off must not show the beginning of a secret.
import type { Mask } from './mask.ts';
import { ReferenceScanner } from './reference-scanner.ts';

export type Emit = (piece: Buffer) => void;

const STAR = 0x2a;
const NOWHERE = -1;
const NOTHING: Buffer = Buffer.alloc(0);

export class BodyMask {
  /** How many ranges were masked; ranges that touch or overlap count as one. */
  ranges = 0;
  readonly #scanner: ReferenceScanner;
  #found: [start: number, end: number][] = [];
  /** Bytes that are held back, as a copy: the piece that they came in may be many times as large. Ends at `#spaceEnd`. */
  #held: Buffer = NOTHING;
  /** Memory of `#held`. It doubles, because a body in pieces of one byte would else be copied for each. */
  #space: Buffer = NOTHING;
  #spaceEnd = 0;
  /** Offset of `#held` in the body. */
  #heldFrom = 0;
  #hiddenFrom = NOWHERE;
  #hiddenTo = NOWHERE;

  constructor(mask: Mask) {
    this.#scanner = new ReferenceScanner(mask, (start, end) => this.#found.push([start, end]));
  }

  /** Takes the next piece, masks in it, and emits the bytes that are safe. */
  push(piece: Buffer, emit: Emit): void {
    this.#scanner.scan(piece);
    if (this.#found.length > 0) this.#hideFound(piece);
    const leaving = this.#scanner.safeToEmitUpTo - this.#heldFrom;
    this.#heldFrom += leaving;
    const held = this.#held;
    if (leaving < held.length) {
      if (leaving > 0) emit(held.subarray(0, leaving));
      this.#hold(held.subarray(leaving), piece);
      return;
    }
    if (held.length > 0) emit(held);
    const cut = leaving - held.length;
    if (cut > 0) emit(cut === piece.length ? piece : piece.subarray(0, cut));
    this.#space = this.#held = cut === piece.length ? NOTHING : Buffer.from(piece.subarray(cut));
    this.#spaceEnd = this.#held.length;
  }

  /** The body is complete: held bytes are emitted, masked if they are a value. */
  end(emit: Emit): void {
    this.#scanner.end();
    if (this.#found.length > 0) this.#hideFound(NOTHING);
    if (this.#held.length > 0) emit(this.#held);
    this.#held = NOTHING;
  }

  /** `rest` is the end of the held bytes. */
  #hold(rest: Buffer, piece: Buffer): void {
    const length = rest.length + piece.length;
    if (this.#spaceEnd + piece.length > this.#space.length) {
      this.#space = Buffer.allocUnsafe(2 * length);
      this.#spaceEnd = rest.copy(this.#space);
    }
    this.#spaceEnd += piece.copy(this.#space, this.#spaceEnd);
    this.#held = this.#space.subarray(this.#spaceEnd - length, this.#spaceEnd);
  }

  #hideFound(piece: Buffer): void {
    for (const [start, end] of this.#found) this.#hide(start, end, piece);
    this.#found = [];
  }

  #hide(start: number, end: number, piece: Buffer): void {
    // Found late, because a reference was part of it: it lies before the latest range and is none of it.
    if (end < this.#hiddenFrom) {
      this.ranges += 1;
      this.#fill(start, end, piece);
      return;
    }
    if (start > this.#hiddenTo) {
      this.ranges += 1;
      this.#hiddenFrom = start;
    }
    // A repetitive value is found at each of its bytes: each byte is written once.
    const from = start < this.#hiddenFrom ? start : Math.max(start, this.#hiddenTo);
    this.#hiddenFrom = Math.min(this.#hiddenFrom, start);
    this.#hiddenTo = Math.max(this.#hiddenTo, end);
    if (from < end) this.#fill(from, end, piece);
  }

  #fill(from: number, end: number, piece: Buffer): void {
    const split = this.#heldFrom + this.#held.length;
    if (from < split) this.#held.fill(STAR, from - this.#heldFrom, Math.min(end, split) - this.#heldFrom);
    if (end > split) piece.fill(STAR, Math.max(from - split, 0), end - split);
  }
}
