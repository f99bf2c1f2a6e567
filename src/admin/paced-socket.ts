// A client's socket that hands over little in each turn of the event loop. Node's parser takes what it is given to the
// end before anything else runs, and 64 KiB of small requests are thousands. It must not know what the bytes say.
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

const OUTSIDER_BYTES = 1024;
const TRUSTED_BYTES = 16 * 1024;

export class PacedSocket extends Duplex {
  /** Taken at once: a socket that was reset does not know it any more. */
  readonly remoteAddress: string | undefined;
  readonly #raw: Socket;
  #pieceBytes = OUTSIDER_BYTES;
  #isWanted = false;
  #next: NodeJS.Immediate | undefined;

  constructor(raw: Socket) {
    super({ readableHighWaterMark: OUTSIDER_BYTES, writableHighWaterMark: raw.writableHighWaterMark });
    this.#raw = raw;
    this.remoteAddress = raw.remoteAddress;
    raw.on('readable', () => this.#plan());
    raw.on('end', () => this.push(null));
    raw.on('timeout', () => this.emit('timeout'));
    raw.on('error', (error) => this.destroy(error));
    raw.on('close', () => this.destroy());
  }

  /** Whoever has shown the token may send faster. */
  trust(): void {
    this.#pieceBytes = TRUSTED_BYTES;
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
      // Also where nothing is buffered: that is how the raw socket learns to tell its end.
      const piece: Buffer | null = this.#raw.read(Math.min(this.#pieceBytes, this.#raw.readableLength));
      if (piece === null) return;
      this.#isWanted = false;
      this.push(piece);
    });
  }
}
