// A connection over an upgraded one of a unix socket, each direction of which ends by itself. To the peer of a unix socket a
// half-closed, a closed and a killed connection look the same: so each direction ends with a frame that says so, and a
// connection that is closed without them has broken.
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

const HEAD_BYTES = 4;
const MAX_FRAME_BYTES = 2 ** 30;
const END = Buffer.alloc(HEAD_BYTES);

/** It has what node:http asks of the socket of a request. */
export class FramedSocket extends Duplex {
  readonly #raw: Socket;
  readonly #head: Buffer = Buffer.alloc(HEAD_BYTES);
  #headBytes = 0;
  /** Of the frame that is being received. */
  #missing = 0;
  #isInputEnded = false;
  #onDrain: (() => void) | undefined;

  constructor(raw: Socket) {
    super({ allowHalfOpen: true });
    this.#raw = raw;
    // It may break before anybody uses it.
    this.on('error', () => undefined);
    raw
      .on('data', (piece: Buffer) => this.#receive(piece))
      .on('drain', () => this.#continue())
      .on('timeout', () => this.emit('timeout'))
      .on('error', () => this.#lose())
      .on('end', () => this.#lose())
      .on('close', () => this.#lose());
  }

  override _read(): void {
    this.#raw.resume();
  }

  override _write(piece: Buffer, _: BufferEncoding, done: () => void): void {
    if (piece.length === 0) return done();
    const raw = this.#raw;
    const head = Buffer.allocUnsafe(HEAD_BYTES);
    head.writeUInt32BE(piece.length);
    raw.cork();
    raw.write(head);
    const hasCapacity = raw.write(piece);
    raw.uncork();
    if (hasCapacity) done();
    else this.#onDrain = done;
  }

  override _final(done: () => void): void {
    this.#raw.write(END, () => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const raw = this.#raw;
    if (error === null && this.writableFinished) raw.end(() => raw.destroy());
    else raw.destroy();
    this.#continue();
    done(error);
  }

  setTimeout(ms: number, onTimeout?: () => void): this {
    this.#raw.setTimeout(ms);
    if (onTimeout) this.once('timeout', onTimeout);
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    this.#raw.ref();
    return this;
  }

  unref(): this {
    this.#raw.unref();
    return this;
  }

  #receive(piece: Buffer): void {
    for (let at = 0; at < piece.length && !this.destroyed; ) {
      if (this.#missing > 0) {
        const part = piece.subarray(at, at + this.#missing);
        this.#missing -= part.length;
        at += part.length;
        if (!this.push(part)) this.#raw.pause();
      } else at += this.#receiveHead(piece.subarray(at));
    }
  }

  #receiveHead(bytes: Buffer): number {
    const taken = bytes.copy(this.#head, this.#headBytes);
    this.#headBytes += taken;
    if (this.#headBytes < HEAD_BYTES) return taken;
    this.#headBytes = 0;
    this.#missing = this.#head.readUInt32BE();
    if (this.#isInputEnded || this.#missing > MAX_FRAME_BYTES) this.#lose();
    else if (this.#missing === 0) {
      this.#isInputEnded = true;
      this.push(null);
    }
    return taken;
  }

  /** As a reset does: what was received is not complete. */
  #lose(): void {
    const isComplete = this.#isInputEnded && this.writableFinished;
    if (!isComplete) this.destroy(Object.assign(new Error('the connection broke'), { code: 'ECONNRESET' }));
  }

  #continue(): void {
    const done = this.#onDrain;
    this.#onDrain = undefined;
    done?.();
  }
}
