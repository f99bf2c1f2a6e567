// One request to the application in a worker: both bodies stream, each no faster than its reader.
import type { AppResponse } from '../../../agent-worker/protocol/calls.ts';
import { ReceiveCredit, SendCredit } from '../../../agent-worker/protocol/credit.ts';
import { ProtocolError } from '../../../agent-worker/protocol/frame.ts';
import { checkResult } from './call-shapes.ts';
import type { StreamedAppResponse } from './graph-workers.ts';
import type { CallLink, CallMessage, WorkerCall } from './worker-call.ts';
import { WorkerError } from './worker-error.ts';

/** Of one frame. */
const PIECE_BYTES = 64 * 1024;
const CANCELLED = { kind: 'cancelled', reason: 'lost' } as const;

export class AppCall implements WorkerCall {
  readonly port: undefined;
  readonly #link: CallLink;
  readonly #sendCredit: SendCredit = new SendCredit();
  readonly #receiveCredit: ReceiveCredit = new ReceiveCredit();
  readonly #head: PromiseWithResolvers<StreamedAppResponse> = Promise.withResolvers();
  #hasHead = false;
  #pieces: { readonly bytes: Buffer; readonly frameBytes: number }[] = [];
  #end: 'complete' | WorkerError | undefined;
  #wake: (() => void) | undefined;

  constructor(link: CallLink) {
    this.#link = link;
  }

  /** With the head of the response. */
  get response(): Promise<StreamedAppResponse> {
    return this.#head.promise;
  }

  receive(message: CallMessage, bytes: number): boolean {
    if (message.type === 'credit') this.#sendCredit.grant(message.bytes);
    else if (message.type === 'data') this.#receiveData(message.base64, message.isLast === true, bytes);
    else if (message.type === 'result') this.#receiveHead(message.value);
    else if (message.type === 'error') this.fail(new WorkerError(message.error));
    else throw new ProtocolError(`a message ${message.type} of http.request`);
    return message.type === 'error' || (message.type === 'data' && message.isLast === true);
  }

  /** The client has left. */
  cancel(): void {
    if (this.#end !== undefined) return;
    this.#link.send({ type: 'cancel', id: this.#link.id, reason: 'lost' });
    this.#link.leave();
    this.fail(new WorkerError(CANCELLED));
  }

  fail(error: WorkerError): void {
    if (this.#end !== undefined) return;
    this.#end = error;
    this.#sendCredit.close();
    this.#head.reject(error);
    this.#wake?.();
  }

  /** Sends the body of the request. Resolves when it is sent, or when the application wants no more of it. */
  async sendBody(body: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const piece of body) {
      const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        await this.#sendCredit.opened();
        if (this.#end !== undefined) return;
        this.#sendCredit.use(this.#sendData(bytes.toString('base64', at, at + PIECE_BYTES)));
      }
    }
    await this.#sendCredit.opened();
    if (this.#end === undefined) this.#sendData('', true);
  }

  #sendData(base64: string, isLast = false): number {
    return this.#link.send({ type: 'data', id: this.#link.id, base64, ...(isLast && { isLast }) });
  }

  #receiveHead(value: unknown): void {
    if (this.#hasHead) throw new ProtocolError('a second result of http.request');
    this.#hasHead = true;
    checkResult('http.request', value);
    this.#head.resolve({ ...(value as AppResponse), body: this.#read() });
  }

  #receiveData(base64: string, isLast: boolean, frameBytes: number): void {
    if (!this.#hasHead) throw new ProtocolError('data before the result of http.request');
    this.#receiveCredit.receive(frameBytes);
    if (this.#end !== undefined) return;
    this.#pieces.push({ bytes: Buffer.from(base64, 'base64'), frameBytes });
    if (isLast) {
      this.#end = 'complete';
      this.#sendCredit.close();
    }
    this.#wake?.();
  }

  async *#read(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const piece = this.#pieces.shift();
        if (piece !== undefined) {
          if (piece.bytes.length > 0) yield piece.bytes;
          this.#grant(piece.frameBytes);
        } else if (this.#end instanceof WorkerError) throw this.#end;
        else if (this.#end === 'complete') return;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      // Who leaves before the end wants no more of it.
      this.cancel();
      this.#pieces = [];
    }
  }

  #grant(consumed: number): void {
    const bytes = this.#receiveCredit.consume(consumed);
    if (bytes > 0 && this.#end === undefined) this.#link.send({ type: 'credit', id: this.#link.id, bytes });
  }
}
