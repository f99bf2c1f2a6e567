// The last bytes of one output stream of a command, with offsets from its beginning. They are kept as valid UTF-8: clients
// compute the offset of the next piece from the text that they got, in which an invalid byte is a character of three bytes.
import { StringDecoder } from 'node:string_decoder';

const FIRST_BYTES = 4 * 1024;

/** What one byte of output may become. */
export const INFLATION = 3;

export type OutputPiece = { readonly text: string; readonly offset: number; readonly end: number };

/** Where a ring gets its memory. */
export type RingMemory = {
  /** False where there is none; what is required is given in any case. */
  take(bytes: number, isRequired: boolean): boolean;
  give(bytes: number): void;
};

const ENOUGH: RingMemory = { take: () => true, give: () => undefined };

export class OutputRing {
  readonly #maxBytes: number;
  readonly #memory: RingMemory;
  readonly #decoder: StringDecoder = new StringDecoder('utf8');
  #bytes: Buffer = Buffer.alloc(0);
  #end = 0;
  #start = 0;

  constructor(maxBytes: number, memory: RingMemory = ENOUGH) {
    this.#maxBytes = maxBytes;
    this.#memory = memory;
  }

  /** The offset behind the last byte. */
  get end(): number {
    return this.#end;
  }

  /** The offset of the oldest byte that is kept. */
  get start(): number {
    return this.#start;
  }

  /** Memory that it takes. */
  get allocated(): number {
    return this.#bytes.length;
  }

  push(bytes: Buffer): void {
    this.#append(Buffer.from(this.#decoder.write(bytes)));
  }

  /** A character that was cut off becomes visible. */
  finish(): void {
    this.#append(Buffer.from(this.#decoder.end()));
  }

  /** Characters from `offset` on, or from the oldest that is kept; undefined where there is none yet. */
  read(offset: number, maxBytes: number): OutputPiece | undefined {
    const from = Math.max(this.#start, Math.min(offset, this.#end));
    const all = this.#copy(from, Math.min(this.#end, from + maxBytes));
    const first = beginOfCharacter(all);
    const last = endOfCharacters(all);
    if (last <= first) return undefined;
    return { text: all.toString('utf8', first, last), offset: from + first, end: from + last };
  }

  /** Gives up half of its memory, and the oldest bytes with it. False where it has little. */
  shrink(): boolean {
    const size = Math.max(FIRST_BYTES, Math.ceil(this.#bytes.length / 2));
    const given = this.#bytes.length - size;
    if (given <= 0) return false;
    this.#resize(size);
    this.#memory.give(given);
    return true;
  }

  #append(bytes: Buffer): void {
    if (bytes.length === 0) return;
    const end = this.#end + bytes.length;
    this.#grow(Math.min(this.#maxBytes, end - this.#start));
    const size = this.#bytes.length;
    const kept = bytes.subarray(Math.max(0, bytes.length - size));
    this.#end = end;
    this.#start = Math.max(this.#start, end - size);
    for (let at = 0; at < kept.length; ) {
      const place = (end - kept.length + at) % size;
      at += kept.copy(this.#bytes, place, at);
    }
  }

  /** Doubles, so that most commands take little. Without memory it stays as it is, and old bytes make place for new ones. */
  #grow(wanted: number): void {
    const before = this.#bytes.length;
    if (wanted <= before) return;
    let size = Math.max(FIRST_BYTES, before);
    while (size < wanted) size *= 2;
    size = Math.min(size, this.#maxBytes);
    if (!this.#memory.take(size - before, false)) {
      if (before > 0) return;
      size = Math.min(FIRST_BYTES, this.#maxBytes);
      this.#memory.take(size, true);
    }
    this.#resize(size);
  }

  #resize(size: number): void {
    this.#start = Math.max(this.#start, this.#end - size);
    const all = this.#copy(this.#start, this.#end);
    this.#bytes = Buffer.alloc(size);
    for (let at = 0; at < all.length; ) at += all.copy(this.#bytes, (this.#start + at) % size, at);
  }

  #copy(from: number, to: number): Buffer {
    const out = Buffer.allocUnsafe(Math.max(0, to - from));
    const size = this.#bytes.length;
    for (let at = 0; at < out.length; ) at += this.#bytes.copy(out, at, (from + at) % size);
    return out;
  }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Behind what is left of a character whose beginning is gone. */
function beginOfCharacter(bytes: Buffer): number {
  let at = 0;
  while (at < 3 && isContinuation(bytes[at])) at += 1;
  return at;
}

/** Before a character that is not there as a whole. */
function endOfCharacters(bytes: Buffer): number {
  let at = bytes.length - 1;
  while (at > 0 && bytes.length - at < 4 && isContinuation(bytes[at])) at -= 1;
  const lead = bytes[at] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return bytes.length - at >= length ? bytes.length : at;
}
