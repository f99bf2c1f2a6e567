// One stream of an HTTP/2 connection at a test peer: what was received, and functions to send, including forbidden frames.
//
//   stream.blocks  .content  .length  .sha256  .isEnded  .resetCode           received
//   stream.headers(fields, { isEnd })  .data(bytes, { isEnd })  .reset(code)  .grant(bytes)  .ended()
import { createHash } from 'node:crypto';
import {
  dataFrame,
  type ErrorName,
  headersFrame,
  rstFrame,
  type Settings,
  windowFrame,
} from './h2-frames.ts';
import { encodeBlock, type Field, type SentField } from './hpack.ts';

export type HeaderBlock = { readonly fields: readonly Field[]; readonly isEnd: boolean };

/** The parts of its connection that a stream uses. */
type Connection = {
  window: number;
  readonly remote: Settings;
  readonly isClosed: boolean;
  send(...bytes: readonly (Buffer | string)[]): Promise<boolean>;
  until<T>(read: () => T | undefined, what: string): Promise<T>;
};

const STORED_BYTES = 1 << 20;

/** One stream at this end: what was received, and functions to send. */
export class H2Stream {
  readonly #peer: Connection;
  readonly #hash = createHash('sha256');
  readonly #stored: Buffer[] = [];
  readonly id: number;
  /** Every received header block: interim heads, head, trailers. */
  readonly blocks: HeaderBlock[] = [];
  /** The number of received content bytes. */
  length = 0;
  /** Whether the other end has sent END_STREAM. */
  isEnded = false;
  /** Whether this end has sent END_STREAM. */
  hasSentEnd = false;
  /** The code of the received RST_STREAM. */
  resetCode: ErrorName | number | undefined;
  /** Whether this end has sent RST_STREAM. */
  hasSentReset = false;
  /** The remaining send window. */
  window: number;

  constructor(peer: Connection, id: number, window: number) {
    this.#peer = peer;
    this.id = id;
    this.window = window;
  }

  get isOver(): boolean {
    return (
      (this.isEnded && this.hasSentEnd) ||
      this.resetCode !== undefined ||
      this.hasSentReset ||
      this.#peer.isClosed
    );
  }

  /** The content, limited to 1 MiB. */
  get content(): Buffer {
    return Buffer.concat(this.#stored).subarray(0, STORED_BYTES);
  }

  get sha256(): string {
    return this.#hash.copy().digest('hex');
  }

  add(piece: Buffer): void {
    if (this.length < STORED_BYTES) this.#stored.push(Buffer.from(piece));
    this.length += piece.length;
    this.#hash.update(piece);
  }

  headers(
    fields: readonly SentField[],
    options: { readonly isEnd?: boolean; readonly split?: number } = {},
  ): Promise<boolean> {
    if (options.isEnd === true) this.hasSentEnd = true;
    return this.#peer.send(headersFrame(this.id, encodeBlock(fields), options));
  }

  /** Sends within the windows and waits for them; false when the stream was reset or closed before the end. */
  async data(bytes: string | Buffer, { isEnd = false }: { readonly isEnd?: boolean } = {}): Promise<boolean> {
    const content = Buffer.from(bytes);
    for (let at = 0; ; ) {
      const left = content.length - at;
      const size = left === 0 ? 0 : await this.#peer.until(() => this.#takeWindow(left), 'a window');
      if (size < 0) return false;
      const isLast = size === left;
      if (isLast && isEnd) this.hasSentEnd = true;
      const piece = content.subarray(at, at + size);
      at += size;
      const isTaken = await this.#peer.send(dataFrame(this.id, piece, { isEnd: isLast && isEnd }));
      if (isLast || !isTaken) return isTaken;
    }
  }

  reset(code: ErrorName | number = 'CANCEL'): Promise<boolean> {
    this.hasSentReset = true;
    return this.#peer.send(rstFrame(this.id, code));
  }

  /** Grants the other end this number of additional bytes on this stream. */
  grant(bytes: number): Promise<boolean> {
    return this.#peer.send(windowFrame(this.id, bytes));
  }

  /** True when the other end has completed the stream; false when the stream or the connection was aborted before. */
  ended(): Promise<boolean> {
    const isBroken = (): boolean => this.resetCode !== undefined || this.#peer.isClosed;
    return this.#peer.until(
      () => (this.isEnded ? true : isBroken() ? false : undefined),
      `the end of stream ${this.id}`,
    );
  }

  /** Waits for RST_STREAM, also after the end; undefined when the connection closed instead. */
  async resetOrClosed(): Promise<ErrorName | number | undefined> {
    await this.#peer.until(
      () => (this.resetCode ?? (this.#peer.isClosed || undefined)) !== undefined || undefined,
      'RST_STREAM',
    );
    return this.resetCode;
  }

  // Reserved when it is read, so that two waiting streams do not use the same window.
  #takeWindow(wanted: number): number | undefined {
    if (this.resetCode !== undefined || this.#peer.isClosed) return -1;
    const size = Math.min(wanted, this.window, this.#peer.window, this.#peer.remote.max_frame_size ?? 16_384);
    if (size <= 0) return undefined;
    this.window -= size;
    this.#peer.window -= size;
    return size;
  }
}
