// Records of one sandbox that wait to be sent, in their order, and the memory that all of them may take. Pure.

/** What the queues of a process hold together, in characters. */
export type Held = { total: number };

/** Characters; a record has some hundreds, plus what its objects take. */
const MAX_HELD = 16 * 1024 * 1024;
const ENTRY = 128;

export class RecordQueue {
  readonly #held: Held;
  #texts: string[] = [];
  #own = 0;

  constructor(held: Held) {
    this.#held = held;
  }

  get length(): number {
    return this.#texts.length;
  }

  /**
   * A queue may hold as much as is left free: one of them half of all, two a third each. However many hold as much as
   * they may, there is room for another, so that a sandbox whose records nobody takes cannot stop its neighbours.
   */
  get isBlocked(): boolean {
    return this.#own >= MAX_HELD - this.#held.total;
  }

  /** Between blocked and full is room for what was under way when it became blocked. */
  get isFull(): boolean {
    return this.#own >= 2 * (MAX_HELD - this.#held.total);
  }

  push(text: string): void {
    this.#texts.push(text);
    this.#weigh(text.length + ENTRY);
  }

  /** The oldest, which stay until they are removed; at least one, if there is one. */
  peek(maxCount: number, maxChars: number): readonly string[] {
    let chars = 0;
    let count = 0;
    for (const { length } of this.#texts) {
      chars += length;
      if (count === maxCount || (count > 0 && chars > maxChars)) break;
      count += 1;
    }
    return this.#texts.slice(0, count);
  }

  /** Whether a batch of that size would be full. */
  fills(maxCount: number, maxChars: number): boolean {
    return this.#texts.length >= maxCount || this.#own - ENTRY * this.#texts.length >= maxChars;
  }

  remove(count: number): void {
    for (const { length } of this.#texts.splice(0, count)) this.#weigh(-length - ENTRY);
  }

  #weigh(chars: number): void {
    this.#own += chars;
    this.#held.total += chars;
  }
}
