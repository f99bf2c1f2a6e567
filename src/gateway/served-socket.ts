// What node:http takes for the socket of a client: it reads only canonical bytes of accepted requests, and writes to the
// client. The connection behind it reads and frames what the client sends.
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

export type ServedSocketOwner = {
  /** node:http wants more of the request. */
  onWanted(): void;
  /** node:http has written its last response. */
  onServed(): void;
};

export class ServedSocket<Owner extends ServedSocketOwner> extends Duplex {
  readonly owner: Owner;
  readonly #raw: Socket;
  #onDrain: (() => void) | undefined;

  constructor(raw: Socket, owner: Owner) {
    super();
    this.owner = owner;
    this.#raw = raw;
    // A client that left destroys it; what node:http still wanted to write is lost.
    this.on('error', () => undefined);
    raw.on('drain', () => this.#continue());
  }

  override _read(): void {
    this.owner.onWanted();
  }

  override _write(piece: Buffer, _: BufferEncoding, done: () => void): void {
    if (this.#raw.write(piece)) done();
    else this.#onDrain = done;
  }

  override _writev(pieces: readonly { readonly chunk: Buffer }[], done: () => void): void {
    this.#raw.cork();
    let isBelowLimit = true;
    for (const { chunk } of pieces) isBelowLimit = this.#raw.write(chunk);
    this.#raw.uncork();
    if (isBelowLimit) done();
    else this.#onDrain = done;
  }

  override _final(done: () => void): void {
    done();
    this.owner.onServed();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#onDrain = undefined;
    done(error);
  }

  /** node:http calls this after a response with `Connection: close`. */
  destroySoon(): void {
    this.end();
  }

  #continue(): void {
    const done = this.#onDrain;
    this.#onDrain = undefined;
    done?.();
  }
}
