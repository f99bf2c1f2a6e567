// A client's socket that delivers few bytes in each turn of the event loop. Node's parser processes what it is given to
// the end before anything else runs, and 64 KiB of small requests are thousands of requests.
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

export class PacedSocket extends Duplex {
  /** Read at once: a socket that was reset no longer has it. */
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  /** How many bytes one turn of the event loop delivers at most. */
  pieceBytes: number;
  readonly #raw: Socket;
  #isWanted = false;
  #next: NodeJS.Immediate | undefined;

  constructor(raw: Socket, pieceBytes: number) {
    super({ readableHighWaterMark: pieceBytes, writableHighWaterMark: raw.writableHighWaterMark });
    this.#raw = raw;
    this.pieceBytes = pieceBytes;
    this.remoteAddress = raw.remoteAddress;
    this.remotePort = raw.remotePort;
    raw.on('readable', () => this.#plan());
    raw.on('end', () => this.push(null));
    raw.on('timeout', () => this.emit('timeout'));
    raw.on('error', (error) => this.destroy(error));
    raw.on('close', () => this.destroy());
  }

  // Node's HTTP server calls these two of any socket that has them, as a net.Socket does.
  setTimeout(ms: number): this {
    this.#raw.setTimeout(ms);
    return this;
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  override _read(): void {
    this.#isWanted = true;
    this.#plan();
  }

  override _write(piece: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#raw.write(piece, done);
  }

  override _final(done: () => void): void {
    this.#raw.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearImmediate(this.#next);
    this.#raw.destroy();
    done(error);
  }

  #plan(): void {
    if (!this.#isWanted || this.#next !== undefined) return;
    this.#next = setImmediate(() => {
      this.#next = undefined;
      // Also with nothing buffered: a read makes the raw socket emit its end.
      const piece: Buffer | null = this.#raw.read(Math.min(this.pieceBytes, this.#raw.readableLength));
      if (piece === null) return;
      this.#isWanted = false;
      this.push(piece);
    });
  }
}
