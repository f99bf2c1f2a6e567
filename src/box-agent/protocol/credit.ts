// Back-pressure of one direction of a call: a side sends only what the other has granted, and each call begins with a window.
// A peer that sends more, or grants more than was sent, breaks the protocol. Pure.
import { ProtocolError } from './frame.ts';

/** What a side may have sent and the other not yet consumed, for each call and direction. */
export const WINDOW_BYTES: number = 256 * 1024;

/** Small grants are collected, so that a slow consumer does not cost a frame for each byte. */
const GRANT_BYTES = WINDOW_BYTES / 4;

/** Of the side that sends. */
export class SendCredit {
  #available = WINDOW_BYTES;
  #isClosed = false;
  #wake: (() => void) | undefined;

  /** How many bytes may be sent now, at most `wanted`; waits while that is none. 0 once it was closed. One caller at a time. */
  async take(wanted: number): Promise<number> {
    while (this.#available === 0 && !this.#isClosed) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    if (this.#isClosed) return 0;
    const bytes = Math.min(wanted, this.#available);
    this.#available -= bytes;
    return bytes;
  }

  /** Throws a ProtocolError. */
  grant(bytes: number): void {
    if (this.#available + bytes > WINDOW_BYTES) throw new ProtocolError('more credit than was used');
    this.#available += bytes;
    this.#wake?.();
  }

  /** Nothing more is sent. */
  close(): void {
    this.#isClosed = true;
    this.#wake?.();
  }
}

/** Of the side that receives. */
export class ReceiveCredit {
  #open = WINDOW_BYTES;
  #consumed = 0;

  /** Throws a ProtocolError. */
  receive(bytes: number): void {
    if (bytes > this.#open) throw new ProtocolError('more bytes than were granted');
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
