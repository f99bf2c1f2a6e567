// Bytes of an incomplete head. Reports whether parsing again can make progress: a peer that sends a head in pieces of one
// byte must not cause a copy and a parse from the beginning for each of them. Independent of sockets; of heads it uses
// only that lines end in LF.
import { LF } from './byte-class.ts';

export class HeadBuffer {
  readonly #maxHeadBytes: number;
  /** The only chunk as it came, or a larger buffer of our own. */
  #store: Buffer | undefined;
  #length = 0;
  #canProgress = false;

  constructor(maxHeadBytes: number) {
    this.#maxHeadBytes = maxHeadBytes;
  }

  get length(): number {
    return this.#length;
  }

  /** Adds `chunk`; the first one is stored uncopied. */
  push(chunk: Buffer): void {
    const start = this.#length;
    if (start === 0) {
      this.#canProgress = true;
      this.#replace(chunk);
      return;
    }
    this.#length += chunk.length;
    // Within a line the parser can only find that the head is too large, and the limit covers that.
    this.#canProgress ||= this.#length >= this.#maxHeadBytes || chunk.includes(LF);
    this.#grow(start).set(chunk, start);
  }

  /** All bytes, or undefined if parsing them again cannot make progress. */
  takeForParsing(): Buffer | undefined {
    if (!this.#canProgress) return undefined;
    this.#canProgress = false;
    return this.#bytes();
  }

  /** Replaces the bytes with those that a parser has found to be an incomplete head. */
  restart(bytes: Buffer): void {
    this.#canProgress = false;
    this.#replace(bytes);
  }

  /** Removes all bytes. They belong to the caller: the buffer does not write to them again. */
  take(): Buffer | undefined {
    const bytes = this.#bytes();
    this.#store = undefined;
    this.#length = 0;
    this.#canProgress = false;
    return bytes;
  }

  #replace(bytes: Buffer): void {
    this.#store = bytes;
    this.#length = bytes.length;
  }

  #bytes(): Buffer | undefined {
    const store = this.#store;
    return store === undefined || store.length === this.#length ? store : store.subarray(0, this.#length);
  }

  /** Doubles the capacity, so that the cost of all copies is linear. Copies the first `length` bytes. */
  #grow(length: number): Buffer {
    const store = this.#store;
    if (store && store.length >= this.#length) return store;
    const larger = Buffer.alloc(this.#length * 2);
    store?.copy(larger, 0, 0, length);
    this.#store = larger;
    return larger;
  }
}
