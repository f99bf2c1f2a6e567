// One call to an agent, from the box host. What arrives is counted against what was granted; the messages are parsed by the
// method's own parsers, and each may come once.
import { ReceiveCredit, SendCredit } from '../../box-agent/protocol/credit.ts';
import {
  encodeCredit,
  type Frame,
  type FrameType,
  MAX_DATA_BYTES,
  ProtocolError,
  decodeCredit,
} from '../../box-agent/protocol/frame.ts';
import { parseFailure } from '../../box-agent/protocol/messages.ts';
import { AgentError } from './agent-error.ts';

export type Stream = 'stdout' | 'stderr';

/** How what the agent sends for one method is read. */
export type CallShape<H, R> = {
  readonly parseHead?: (payload: Buffer) => H;
  readonly parseResult: (payload: Buffer) => R;
  /** Takes bytes; the consumer grants them when it has used them. */
  onData?(stream: Stream, bytes: Buffer): void;
  /** No more bytes come; with the reason where the call failed. */
  onEnd?(error?: AgentError): void;
};

type SendFrame = (type: FrameType, payload: Buffer) => Promise<void>;

const NOTHING = Buffer.alloc(0);

export class RunningCall<H, R> {
  readonly #shape: CallShape<H, R>;
  readonly #send: SendFrame;
  readonly #head: PromiseWithResolvers<H> = Promise.withResolvers();
  readonly #result: PromiseWithResolvers<R> = Promise.withResolvers();
  readonly #sendCredit: SendCredit = new SendCredit();
  readonly #receiveCredit: ReceiveCredit = new ReceiveCredit();
  #hasHead = false;
  #isDataEnded = false;
  #isInputEnded = false;
  #isCancelled = false;
  #isSettled = false;

  constructor(shape: CallShape<H, R>, send: SendFrame) {
    this.#shape = shape;
    this.#send = send;
    // Each is awaited where it matters; both reject when the call fails.
    this.#head.promise.catch(() => undefined);
    this.#result.promise.catch(() => undefined);
  }

  /** Both reject with an AgentError. */
  get head(): Promise<H> {
    return this.#head.promise;
  }

  get result(): Promise<R> {
    return this.#result.promise;
  }

  /** Sends input; resolves when the agent has granted all of it. Does nothing once the call has ended. */
  async write(bytes: Uint8Array): Promise<void> {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at < buffer.length; ) {
      const count = await this.#sendCredit.take(Math.min(MAX_DATA_BYTES, buffer.length - at));
      if (count === 0) return;
      await this.#send('data', buffer.subarray(at, at + count));
      at += count;
    }
  }

  /** No more input comes. */
  end(): void {
    if (this.#isInputEnded || this.#isOver) return;
    this.#isInputEnded = true;
    void this.#send('end', NOTHING);
  }

  kill(): void {
    if (!this.#isOver) void this.#send('kill', NOTHING);
  }

  /** The consumer has used so many bytes. */
  grant(bytes: number): void {
    const credit = this.#receiveCredit.consume(bytes);
    if (credit > 0 && !this.#isOver) void this.#send('credit', encodeCredit(credit));
  }

  /** The caller is no longer interested. The agent still has to end the call, and its data are discarded until then. */
  cancel(): void {
    if (this.#isOver) return;
    this.#isCancelled = true;
    this.#settle(new AgentError('cancelled'));
    void this.#send('cancel', NOTHING);
  }

  get #isOver(): boolean {
    return this.#isCancelled || this.#isSettled;
  }

  /** True when this was the last frame of the call. Throws a ProtocolError. */
  receive({ type, payload }: Frame): boolean {
    if (type === 'credit') this.#sendCredit.grant(decodeCredit(payload));
    else if (type === 'head') this.#receiveHead(payload);
    else if (type === 'data') this.#receiveData('stdout', payload);
    else if (type === 'error_data') this.#receiveData('stderr', payload);
    else if (type === 'end') this.#receiveEnd();
    else if (type === 'failure') this.#settle(new AgentError('failed', parseFailure(payload).code));
    else if (type === 'result') this.#receiveResult(payload);
    return type === 'result' || type === 'failure';
  }

  /** The channel has ended. */
  fail(error: AgentError): void {
    this.#settle(error);
  }

  #receiveHead(payload: Buffer): void {
    if (this.#hasHead || this.#shape.parseHead === undefined)
      throw new ProtocolError('a head that does not belong to the call');
    this.#hasHead = true;
    this.#head.resolve(this.#shape.parseHead(payload));
  }

  #receiveData(stream: Stream, bytes: Buffer): void {
    if (this.#isDataEnded || (this.#shape.parseHead !== undefined && !this.#hasHead))
      throw new ProtocolError('bytes out of order');
    this.#receiveCredit.receive(bytes.length);
    if (!this.#isOver) this.#shape.onData?.(stream, bytes);
  }

  #receiveEnd(): void {
    if (this.#isDataEnded) throw new ProtocolError('a second end');
    this.#isDataEnded = true;
    if (!this.#isOver) this.#shape.onEnd?.();
  }

  #receiveResult(payload: Buffer): void {
    if (this.#shape.parseHead !== undefined && !this.#hasHead)
      throw new ProtocolError('a result before its head');
    const result = this.#shape.parseResult(payload);
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#sendCredit.close();
    this.#result.resolve(result);
    this.#shape.onEnd?.();
  }

  #settle(error: AgentError): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#sendCredit.close();
    this.#head.reject(error);
    this.#result.reject(error);
    this.#shape.onEnd?.(error);
  }
}
