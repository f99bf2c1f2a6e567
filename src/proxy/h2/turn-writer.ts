// Writes to a stream of HTTP/2 what one turn of the event loop brought for it, in as few pieces as pay. A peer may cut
// a body into frames of a byte: each would cost a hundred times its size while it waits, and a frame of its own on.
import type { Writable } from 'node:stream';
import { joinPieces } from '../joined-pieces.ts';

export class TurnWriter {
  readonly #write: (pieces: readonly Buffer[]) => void;
  #pieces: Buffer[] = [];

  /** `write` gets what a turn brought. */
  constructor(write: (pieces: readonly Buffer[]) => void) {
    this.#write = write;
  }

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    if (this.#pieces.length === 1) process.nextTick(flush, this);
  }

  /** Writes at once what waits for the end of the turn. */
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

/** Writes all of `pieces`; false once the stream wants no more for now. */
export function writeAll(stream: Writable, pieces: readonly Buffer[]): boolean {
  let isWanted = true;
  for (const piece of pieces) isWanted = stream.write(piece);
  return isWanted;
}
