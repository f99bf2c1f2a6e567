// The answer on its way to the client. What one segment of the host brings leaves in one write: head and body
// apart would cost two TLS records and two system calls.
import type { Socket } from 'node:net';

/** Pieces up to this many bytes in all are copied together; larger ones are handed over one by one. */
const MAX_JOINED_BYTES = 16_384;
/** Below this many bytes a piece on average, copying costs less than a write for each, whatever they are in all. */
const SMALL_PIECE_BYTES = 1_024;

export class ResponseOut {
  /** Bytes written towards the client. */
  bytes = 0;
  readonly #client: Socket;
  #pieces: Buffer[] = [];

  constructor(client: Socket) {
    this.#client = client;
  }

  add(piece: Buffer): void {
    this.bytes += piece.length;
    this.#pieces.push(piece);
  }

  /** Writes what was added. */
  flush(): void {
    const pieces = this.#pieces;
    const [first, second] = pieces;
    if (!first) return;
    this.#pieces = [];
    if (!second) {
      this.#client.write(first);
      return;
    }
    const whole = pieces.length === 2 ? adjoined(first, second) : undefined;
    const total = pieces.reduce((sum, piece) => sum + piece.length, 0);
    if (whole) this.#client.write(whole);
    else if (total <= MAX_JOINED_BYTES || total < pieces.length * SMALL_PIECE_BYTES)
      this.#client.write(Buffer.concat(pieces, total));
    else {
      this.#client.cork();
      for (const piece of pieces) this.#client.write(piece);
      this.#client.uncork();
    }
  }
}

/** Two pieces that lie side by side in memory, as one: an answer of which nothing was changed. */
function adjoined(first: Buffer, second: Buffer): Buffer | undefined {
  const isAdjoined = first.buffer === second.buffer && first.byteOffset + first.length === second.byteOffset;
  return isAdjoined ? Buffer.from(first.buffer, first.byteOffset, first.length + second.length) : undefined;
}
