// The first bytes of a value that a scanner gives piece by piece; what is behind them is discarded.
import type { Tap } from './json/json-scanner.ts';

/** For a value that nobody wants. */
export const DISCARD: Tap = { write: () => undefined };

export class Beginning implements Tap {
  readonly #limit: number;
  /** One buffer that grows: a client may send a byte at a time, and an array of each would take two hundred. */
  #bytes = Buffer.alloc(0);
  length = 0;
  isCut = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  write(bytes: Uint8Array): void {
    const rest = this.#limit - this.length;
    this.isCut ||= bytes.length > rest;
    if (rest === 0) return;
    // The scanner gives its bytes for the time of the call.
    const taken = bytes.subarray(0, rest);
    this.#reserve(this.length + taken.length);
    this.#bytes.set(taken, this.length);
    this.length += taken.length;
  }

  text(): string {
    return this.#bytes.toString('utf8', 0, this.length);
  }

  #reserve(size: number): void {
    if (size <= this.#bytes.length) return;
    const isFirst = this.#bytes.length === 0;
    const larger = Buffer.allocUnsafe(
      isFirst ? size : Math.min(this.#limit, Math.max(size, 2 * this.#bytes.length)),
    );
    larger.set(this.#bytes.subarray(0, this.length));
    this.#bytes = larger;
  }
}
