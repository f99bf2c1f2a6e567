// Hides secret values in a body as it streams by, at the same length. What might still become a value is held back until
// the next bytes tell, or until the body has ended: a body that breaks off must not show the beginning of one.
import type { Mask } from './mask.ts';
import { NeedleScanner } from './needle-scanner.ts';

export type Emit = (piece: Buffer) => void;

const STAR = 0x2a;
const NOWHERE = -1;
const NOTHING: Buffer = Buffer.alloc(0);

export class BodyMask {
  /** How many were hidden; those that touch or overlap are one. */
  places = 0;
  readonly #scanner: NeedleScanner;
  #found: [start: number, end: number][] = [];
  /** A copy: the piece that it came in may be many times as large. Ends at `#roomEnd` of `#room`. */
  #held: Buffer = NOTHING;
  /** Grows by doubling: a body in pieces of a byte would be copied once for each. What has left it is not overwritten. */
  #space: Buffer = NOTHING;
  #spaceEnd = 0;
  /** Where in the body it begins. */
  #heldFrom = 0;
  #hiddenFrom = NOWHERE;
  #hiddenTo = NOWHERE;

  constructor(mask: Mask) {
    this.#scanner = new NeedleScanner(mask, (start, end) => this.#found.push([start, end]));
  }

  /** Takes the next piece, writes into it, and emits what may leave. */
  push(piece: Buffer, emit: Emit): void {
    this.#scanner.scan(piece);
    if (this.#found.length > 0) this.#hideFound(piece);
    const leaving = this.#scanner.openFrom - this.#heldFrom;
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

  /** The body is whole: what is held became no value, unless it ended as one. */
  end(emit: Emit): void {
    this.#scanner.end();
    if (this.#found.length > 0) this.#hideFound(NOTHING);
    if (this.#held.length > 0) emit(this.#held);
    this.#held = NOTHING;
  }

  /** `rest` is the end of what is held. */
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
    if (start > this.#hiddenTo) {
      this.places += 1;
      this.#hiddenFrom = start;
    }
    // A value that repeats itself ends at each of its bytes: each is written once.
    const from = start < this.#hiddenFrom ? start : Math.max(start, this.#hiddenTo);
    this.#hiddenFrom = Math.min(this.#hiddenFrom, start);
    this.#hiddenTo = Math.max(this.#hiddenTo, end);
    const split = this.#heldFrom + this.#held.length;
    if (from < split) this.#held.fill(STAR, from - this.#heldFrom, Math.min(end, split) - this.#heldFrom);
    if (end > split) piece.fill(STAR, Math.max(from - split, 0), end - split);
  }
}
