// Cuts what a program prints into lines. A line that never ends takes no more memory than the longest one that is kept. Pure.
import { StringDecoder } from 'node:string_decoder';

export type Line = { readonly text: string; readonly isTruncated: boolean };

/** Of a line, without its line break. */
export const MAX_LINE_BYTES: number = 16 * 1024;

const LINE_BREAK = 0x0a;
const EMPTY = Buffer.alloc(0);

export class LineSplitter {
  /** What is not cut yet, from `#at` on. */
  #piece: Buffer = EMPTY;
  #at = 0;
  /** The beginning of a line whose end has not come. */
  #parts: Buffer[] = [];
  #length = 0;
  #isTruncated = false;

  /** Only when `next` has returned undefined: whoever reads faster than lines are taken holds more than one piece. */
  add(piece: Buffer): void {
    if (this.#at < this.#piece.length) throw new Error('the piece before has lines that were not taken');
    this.#piece = piece;
    this.#at = 0;
  }

  /** Undefined: the rest is no whole line. */
  next(): Line | undefined {
    const end = this.#piece.indexOf(LINE_BREAK, this.#at);
    this.#keep(this.#piece.subarray(this.#at, end === -1 ? undefined : end));
    this.#at = end === -1 ? this.#piece.length : end + 1;
    if (end !== -1) return this.#take();
    this.#piece = EMPTY;
    this.#at = 0;
    return undefined;
  }

  /** Nothing comes any more: what has no line break; undefined: nothing. */
  finish(): Line | undefined {
    return this.#length === 0 ? undefined : this.#take();
  }

  #keep(part: Buffer): void {
    const space = MAX_LINE_BYTES - this.#length;
    if (part.length > space) this.#isTruncated = true;
    if (part.length === 0 || space === 0) return;
    // A copy: a view would keep the whole piece in memory.
    this.#parts.push(Buffer.from(part.subarray(0, space)));
    this.#length += Math.min(part.length, space);
  }

  #take(): Line {
    const bytes = this.#parts.length === 1 ? (this.#parts[0] ?? EMPTY) : Buffer.concat(this.#parts);
    const isTruncated = this.#isTruncated;
    this.#parts = [];
    this.#length = 0;
    this.#isTruncated = false;
    // Without half a character at the end, where it was cut.
    return {
      text: isTruncated ? new StringDecoder('utf8').write(bytes) : bytes.toString('utf8'),
      isTruncated,
    };
  }
}
