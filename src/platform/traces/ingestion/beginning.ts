// The first bytes of a value that a scanner gives piece by piece; what is behind them is discarded.
import type { Tap } from './json-scanner.ts';

/** For a value that nobody wants. */
export const DISCARD: Tap = { write: () => undefined };

export class Beginning implements Tap {
  readonly #limit: number;
  readonly #pieces: Uint8Array[] = [];
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
    this.#pieces.push(Uint8Array.from(bytes.subarray(0, rest)));
    this.length += Math.min(rest, bytes.length);
  }

  text(): string {
    return Buffer.concat(this.#pieces).toString('utf8');
  }
}
