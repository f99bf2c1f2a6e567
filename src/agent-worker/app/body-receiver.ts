// The body of a request to the application, as it comes from the server: at most a window of it waits to be read.
import type { Send } from '../channel.ts';
import { ReceiveCredit } from '../protocol/credit.ts';

export class BodyReceiver {
  readonly #id: number;
  readonly #send: Send;
  readonly #credit: ReceiveCredit = new ReceiveCredit();
  readonly #pieces: { readonly bytes: Buffer; readonly frameBytes: number }[] = [];
  #isEnded = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(id: number, send: Send) {
    this.#id = id;
    this.#send = send;
  }

  /** Throws a ProtocolError. */
  receive(base64: string, isLast: boolean, frameBytes: number): void {
    this.#credit.receive(frameBytes);
    if (this.#isEnded) return;
    this.#pieces.push({ bytes: Buffer.from(base64, 'base64'), frameBytes });
    this.#isEnded = isLast;
    this.#wake?.();
  }

  /** Nothing more comes: who reads gets the error. */
  fail(error: Error): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#error = error;
    this.#wake?.();
  }

  async *read(): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        if (piece.bytes.length > 0) yield piece.bytes;
        const granted = this.#credit.consume(piece.frameBytes);
        if (granted > 0) this.#send({ type: 'credit', id: this.#id, bytes: granted });
      } else if (this.#error !== undefined) throw this.#error;
      else if (this.#isEnded) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
