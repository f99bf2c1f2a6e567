// Collects what one turn of the event loop brings for an HTTP/2 stream and writes it in few pieces. A peer may cut a body
// into frames of one byte: each would cost a hundred times its size in memory, and a frame of its own.
import type { Writable } from 'node:stream';
import { joinPieces } from '../joined-pieces.ts';

export class TurnWriter {
  readonly #write: (pieces: readonly Buffer[]) => void;
  #pieces: Buffer[] = [];

  /** `write` gets the pieces of a turn. */
  constructor(write: (pieces: readonly Buffer[]) => void) {
    this.#write = write;
  }

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    if (this.#pieces.length === 1) process.nextTick(flush, this);
  }

  /** Writes buffered pieces at once, before the end of the turn. */
  flush(): void {
    if (this.#pieces.length === 0) return;
    const pieces = joinPieces(this.#pieces);
    this.#pieces = [];
    this.#write(pieces);
  }
}

function flush(writer: TurnWriter): void {
  writer.flush();
}

/** Writes all `pieces`; false if the stream wants no more for now. */
export function writeAll(stream: Writable, pieces: readonly Buffer[]): boolean {
  let isWanted = true;
  for (const piece of pieces) isWanted = stream.write(piece);
  return isWanted;
}
