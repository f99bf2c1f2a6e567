// Back-pressure of one direction of a call: events, or bytes of a body. A call begins with a window. A frame may be sent while
// the credit is above zero, and its whole length is subtracted, so that a frame larger than the window passes too. A peer that
// sends without credit, or grants more than was sent, breaks the protocol. Pure.
import { ProtocolError } from './frame.ts';

/** What a side may send before the other has consumed any of it, for each call and direction. */
export const WINDOW_BYTES: number = 512 * 1024;

/** Small grants are collected, so that a slow consumer does not cost a frame for each event. */
const GRANT_BYTES = WINDOW_BYTES / 4;

/** Of the side that sends. */
export class SendCredit {
  #available = WINDOW_BYTES;
  #isClosed = false;
  #waiting: PromiseWithResolvers<void> | undefined;

  get isOpen(): boolean {
    return this.#available > 0 && !this.#isClosed;
  }

  /** Resolves when a frame may be sent, or when nothing is to be sent any more. */
  async opened(): Promise<void> {
    while (this.#available <= 0 && !this.#isClosed) {
      this.#waiting ??= Promise.withResolvers();
      await this.#waiting.promise;
    }
  }

  /** A frame was sent. */
  use(bytes: number): void {
    this.#available -= bytes;
  }

  /** Throws a ProtocolError. */
  grant(bytes: number): void {
    this.#available += bytes;
    if (this.#available > WINDOW_BYTES) throw new ProtocolError('more credit than was used');
    if (this.#available > 0) this.#wake();
  }

  /** Nothing more is sent. */
  close(): void {
    this.#isClosed = true;
    this.#wake();
  }

  #wake(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}

/** Of the side that receives. */
export class ReceiveCredit {
  #open = WINDOW_BYTES;
  #consumed = 0;

  /** A frame has come. Throws a ProtocolError. */
  receive(bytes: number): void {
    if (this.#open <= 0) throw new ProtocolError('more bytes than were granted');
    this.#open -= bytes;
  }

  /** How much to grant now that so much was consumed; 0 while it is too little. */
  consume(bytes: number): number {
    this.#consumed += bytes;
    if (this.#consumed < GRANT_BYTES) return 0;
    const grant = this.#consumed;
    this.#consumed = 0;
    this.#open += grant;
    return grant;
  }
}
