// One request to the application: the head of the response is the result of the call, and its body follows, no faster than the
// server grants.
import type { Send } from '../channel.ts';
import { SendCredit } from '../protocol/credit.ts';
import type { AppRequest } from '../protocol/calls.ts';
import type { AppMethod } from './app-method.ts';
import { BodyReceiver } from './body-receiver.ts';

/** Of one frame. */
const PIECE_BYTES = 64 * 1024;

export class AppCall {
  readonly #id: number;
  readonly #send: Send;
  readonly #signal: AbortSignal;
  readonly #credit: SendCredit = new SendCredit();
  readonly #received: BodyReceiver;

  constructor(id: number, send: Send, signal: AbortSignal) {
    this.#id = id;
    this.#send = send;
    this.#signal = signal;
    this.#received = new BodyReceiver(id, send);
    signal.addEventListener('abort', () => {
      this.#credit.close();
      this.#received.fail(signal.reason);
    });
  }

  /** Throws a ProtocolError, as `grant` does. */
  receive(base64: string, isLast: boolean, frameBytes: number): void {
    this.#received.receive(base64, isLast, frameBytes);
  }

  grant(bytes: number): void {
    this.#credit.grant(bytes);
  }

  /** Resolves when the last byte is sent. Rejects with what the application threw, also after the head. */
  async run(app: AppMethod, request: AppRequest): Promise<void> {
    const body = request.hasBody ? this.#received.read() : undefined;
    const result = await app(request, { signal: this.#signal, body });
    this.#signal.throwIfAborted();
    this.#send({ type: 'result', id: this.#id, value: result.response });
    for await (const piece of result.body ?? []) await this.#sendBytes(piece);
    this.#send({ type: 'data', id: this.#id, base64: '', isLast: true });
  }

  async #sendBytes(piece: Uint8Array): Promise<void> {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      await this.#credit.opened();
      // Leaving the loop over the body ends the stream of the application.
      this.#signal.throwIfAborted();
      const base64 = bytes.toString('base64', at, at + PIECE_BYTES);
      this.#credit.use(this.#send({ type: 'data', id: this.#id, base64 }));
    }
  }
}
