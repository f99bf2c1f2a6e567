// One call as its method sees it: input that is granted as it is consumed, output that waits for credit, and a signal that
// aborts when nobody waits for the result any more.
import { CallError } from './call-error.ts';
import { ReceiveCredit, SendCredit } from './protocol/credit.ts';
import { encodeCredit, type FrameType, MAX_DATA_BYTES, ProtocolError } from './protocol/frame.ts';
import { encodeJson } from './protocol/messages.ts';

/** Sends a frame; resolves when the channel can take more. */
export type SendFrame = (type: FrameType, payload: Buffer) => Promise<void>;

const NOTHING = Buffer.alloc(0);

export class AgentCall {
  readonly #send: SendFrame;
  readonly #abort: AbortController = new AbortController();
  readonly #sendCredit: SendCredit = new SendCredit();
  readonly #receiveCredit: ReceiveCredit = new ReceiveCredit();
  readonly #input: Buffer[] = [];
  #isInputEnded = false;
  #wake: (() => void) | undefined;
  /** Waits until the bytes before are sent: two streams share the credit, and the channel. */
  #sending: Promise<void> = Promise.resolve();
  /** Set by a method that has something to kill. */
  onKill: (() => void) | undefined;

  constructor(send: SendFrame) {
    this.#send = send;
  }

  get aborted(): AbortSignal {
    return this.#abort.signal;
  }

  async sendHead(head: object): Promise<void> {
    await this.#send('head', encodeJson(head));
  }

  async sendEnd(): Promise<void> {
    await this.#sending;
    if (!this.aborted.aborted) await this.#send('end', NOTHING);
  }

  /** Resolves when all of it is sent, which may take as long as the other side likes. Rejects once the call is aborted. */
  sendData(type: 'data' | 'error_data', bytes: Buffer): Promise<void> {
    const sent = this.#sending.then(() => this.#sendPieces(type, bytes));
    this.#sending = sent.catch(() => undefined);
    return sent;
  }

  async #sendPieces(type: 'data' | 'error_data', bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const count = await this.#sendCredit.take(Math.min(MAX_DATA_BYTES, bytes.length - at));
      if (count === 0 || this.aborted.aborted) throw new CallError('CANCELLED');
      await this.#send(type, bytes.subarray(at, at + count));
      at += count;
    }
  }

  /** The input, piece by piece, until the other side ends it. Throws once the call is aborted. */
  async *input(): AsyncGenerator<Buffer, void, undefined> {
    for (;;) {
      if (this.aborted.aborted) throw new CallError('CANCELLED');
      const piece = this.#input.shift();
      if (piece !== undefined) {
        yield piece;
        const grant = this.#receiveCredit.consume(piece.length);
        if (grant > 0 && !this.#isInputEnded) await this.#send('credit', encodeCredit(grant));
      } else if (this.#isInputEnded) return;
      else await this.#inputArrived();
    }
  }

  async #inputArrived(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await promise;
  }

  receive(piece: Buffer): void {
    if (this.#isInputEnded) throw new ProtocolError('bytes after the end');
    this.#receiveCredit.receive(piece.length);
    this.#input.push(piece);
    this.#wake?.();
  }

  receiveEnd(): void {
    this.#isInputEnded = true;
    this.#wake?.();
  }

  receiveCredit(bytes: number): void {
    this.#sendCredit.grant(bytes);
  }

  abort(): void {
    this.#abort.abort(new CallError('CANCELLED'));
    this.#sendCredit.close();
    this.#wake?.();
  }
}
