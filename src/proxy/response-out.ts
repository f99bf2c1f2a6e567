// The answer on its way to the client. What one segment of the host brings leaves in one write: head and body
// apart would cost two TLS records and two system calls.
import type { Socket } from 'node:net';
import { joinPieces } from './joined-pieces.ts';

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
    if (this.#pieces.length === 0) return;
    const pieces = joinPieces(this.#pieces);
    this.#pieces = [];
    const [first] = pieces;
    if (first && pieces.length === 1) {
      this.#client.write(first);
      return;
    }
    this.#client.cork();
    for (const piece of pieces) this.#client.write(piece);
    this.#client.uncork();
  }
}
