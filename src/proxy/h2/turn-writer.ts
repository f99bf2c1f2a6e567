// Collects what one turn of the event loop brings for an HTTP/2 stream and writes it in few pieces. A peer may cut a body
// into frames of one byte: each would cost a hundred times its size in memory, and a frame of its own.
import type { Writable } from 'node:stream';
import { joinPieces } from '../forwarded-pieces.ts';

export class TurnWriter {
  readonly #write: (pieces: readonly Buffer[]) => void;
  readonly #onBug: (error: unknown) => void;
  #pieces: Buffer[] = [];

  /** `write` gets the pieces of a turn; `onBug` what it throws at the end of one. */
  constructor(write: (pieces: readonly Buffer[]) => void, onBug: (error: unknown) => void) {
    this.#write = write;
    this.#onBug = onBug;
  }

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    if (this.#pieces.length === 1) process.nextTick(flushGuarded, this);
  }

  /** Nothing catches what is thrown here: it would end the process. */
  flushGuarded(): void {
    try {
      this.flush();
    } catch (error) {
      this.#onBug(error);
    }
  }

  /** Writes buffered pieces at once, before the end of the turn. */
  flush(): void {
    if (this.#pieces.length === 0) return;
    const pieces = joinPieces(this.#pieces);
    this.#pieces = [];
    this.#write(pieces);
  }
}

function flushGuarded(writer: TurnWriter): void {
  writer.flushGuarded();
}

/** Writes all `pieces`; false if the stream wants no more for now. */
export function writeAll(stream: Writable, pieces: readonly Buffer[]): boolean {
  let isWanted = true;
  for (const piece of pieces) isWanted = stream.write(piece);
  return isWanted;
}
