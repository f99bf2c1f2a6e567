// Bytes of a head that is not whole yet. It says when parsing them again can learn something: a peer that sends a
// head in pieces of one byte must not have it copied and parsed from its start for each of them.
// Knows nothing of sockets, and of heads only that their lines end in LF.
import { LF } from '../../http1/byte-class.ts';

export class HeadBuffer {
  readonly #maxHeadBytes: number;
  /** The only chunk as it came, or memory of ours with room for more. */
  #store: Buffer | undefined;
  #length = 0;
  #hasNews = false;

  constructor(maxHeadBytes: number) {
    this.#maxHeadBytes = maxHeadBytes;
  }

  get length(): number {
    return this.#length;
  }

  /** Adds `chunk`; the first is kept as it is, uncopied. */
  push(chunk: Buffer): void {
    const start = this.#length;
    if (start === 0) {
      this.#hasNews = true;
      this.#keep(chunk);
      return;
    }
    this.#length += chunk.length;
    // Within a line only its bounds can be broken; the line end or the limit of the whole head will show that.
    this.#hasNews ||= this.#length >= this.#maxHeadBytes || chunk.includes(LF);
    this.#grow(start).set(chunk, start);
  }

  /** All bytes, once, or undefined while a parser that has seen the earlier ones would learn nothing. */
  unparsed(): Buffer | undefined {
    if (!this.#hasNews) return undefined;
    this.#hasNews = false;
    return this.#bytes();
  }

  /** Begins anew with what a parser has found to be the beginning of a head. */
  restart(bytes: Buffer): void {
    this.#hasNews = false;
    this.#keep(bytes);
  }

  /** Empties it. The bytes belong to the caller: they are not written to again. */
  take(): Buffer | undefined {
    const bytes = this.#bytes();
    this.#store = undefined;
    this.#length = 0;
    this.#hasNews = false;
    return bytes;
  }

  #keep(bytes: Buffer): void {
    this.#store = bytes;
    this.#length = bytes.length;
  }

  #bytes(): Buffer | undefined {
    const store = this.#store;
    return store === undefined || store.length === this.#length ? store : store.subarray(0, this.#length);
  }

  /** Doubles, so that all copies together cost no more than the bytes do. */
  #grow(kept: number): Buffer {
    const store = this.#store;
    if (store && store.length >= this.#length) return store;
    const larger = Buffer.alloc(this.#length * 2);
    store?.copy(larger, 0, 0, kept);
    this.#store = larger;
    return larger;
  }
}
