// The answer on its way to the client. What one segment of the host brings leaves in one write: head and body
// apart would cost two TLS records and two system calls.
import type { Socket } from 'node:net';
import { joinPieces } from '../joined-pieces.ts';

export class ResponseOut {
  /** Bytes written towards the client. */
  bytes = 0;
  readonly #client: Socket;
  #first: Buffer | undefined;
  /** There are some only once there is more than one, the first among them. */
  #pieces: Buffer[] | undefined;

  constructor(client: Socket) {
    this.#client = client;
  }

  add(piece: Buffer): void {
    this.bytes += piece.length;
    if (!this.#first) this.#first = piece;
    else if (this.#pieces) this.#pieces.push(piece);
    else this.#pieces = [this.#first, piece];
  }

  /** Writes what was added. */
  flush(): void {
    const first = this.#first;
    if (!first) return;
    const pieces = this.#pieces && joinPieces(this.#pieces);
    this.#first = undefined;
    this.#pieces = undefined;
    if (!pieces || pieces.length === 1) this.#client.write(pieces?.[0] ?? first);
    else this.#writeAll(pieces);
  }

  #writeAll(pieces: readonly Buffer[]): void {
    this.#client.cork();
    for (const piece of pieces) this.#client.write(piece);
    this.#client.uncork();
  }
}
