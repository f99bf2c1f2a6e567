// The records of one sandbox that wait to be sent, in order, and the limit on the memory of all such queues. Pure.

/** The characters in all queues of the process. */
export type Held = { total: number };

/** In characters; a record has a few hundred, plus the overhead of its objects. */
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
   * A queue may hold as much as is left free: a single queue half of the limit, two queues a third each. So there is
   * always space for one more queue, and a sandbox whose records are not accepted cannot block the others.
   */
  get isBlocked(): boolean {
    return this.#own >= MAX_HELD - this.#held.total;
  }

  /** Between blocked and full there is space for the exchanges that were running when it became blocked. */
  get isFull(): boolean {
    return this.#own >= 2 * (MAX_HELD - this.#held.total);
  }

  push(text: string): void {
    this.#texts.push(text);
    this.#weigh(text.length + ENTRY);
  }

  /** The oldest records, which stay until they are removed; at least one unless the queue is empty. */
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

  /** Whether there are enough records for a full batch. */
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
