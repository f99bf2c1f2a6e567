// What a worker asks of the server, as part of a call that runs. The port checks the parameters; what it throws becomes a
// failure that the graph may see. While much of it waits for the database, nothing more is read of the worker.
import type { ServerCalls } from '../../../agent-worker/protocol/calls.ts';
import { FrameTooLarge, ProtocolError } from '../../../agent-worker/protocol/frame.ts';
import type { CallFailure, Message } from '../../../agent-worker/protocol/messages.ts';
import { DomainError, InvalidInput } from '../../../base/domain-error.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import { isServerMethod } from './call-shapes.ts';
import type { ServerCallPort } from './graph-workers.ts';

/** Of one worker, at a time. */
const MAX_CALLS = 4096;

export type ServerCallParts = {
  readonly log: Log;
  /** Of the calls that run. */
  readonly maxBytes: number;
  send(message: Message): void;
  /** Whether they have more than `maxBytes` now. */
  onFull(isFull: boolean): void;
};

export class ServerCallTable {
  readonly #parts: ServerCallParts;
  readonly #running: Set<number> = new Set();
  #bytes = 0;

  constructor(parts: ServerCallParts) {
    this.#parts = parts;
  }

  /** Without a port the call that it belongs to has ended. Throws a ProtocolError. */
  begin(
    call: Extract<Message, { readonly type: 'call' }>,
    bytes: number,
    port: ServerCallPort | undefined,
  ): void {
    const { id, method, params } = call;
    if (this.#running.has(id)) throw new ProtocolError('the id of a call that runs');
    if (this.#running.size >= MAX_CALLS) throw new ProtocolError('too many calls at a time');
    if (!isServerMethod(method)) throw new ProtocolError('a call of an unknown method');
    if (port === undefined) return this.#parts.send({ type: 'error', id, error: ENDED });
    this.#running.add(id);
    this.#count(bytes);
    void this.#run(id, method, params, port).finally(() => {
      this.#running.delete(id);
      this.#count(-bytes);
    });
  }

  #count(bytes: number): void {
    const { maxBytes, onFull } = this.#parts;
    const wasFull = this.#bytes > maxBytes;
    this.#bytes += bytes;
    const isFull = this.#bytes > maxBytes;
    if (isFull !== wasFull) onFull(isFull);
  }

  async #run(id: number, method: keyof ServerCalls, params: unknown, port: ServerCallPort): Promise<void> {
    try {
      const value = await port.handle(method, params as ServerCalls[typeof method]['params']);
      this.#parts.send({ type: 'result', id, value });
    } catch (error) {
      this.#parts.send({ type: 'error', id, error: this.#toFailure(error, method) });
    }
  }

  #toFailure(error: unknown, method: string): CallFailure {
    if (error instanceof FrameTooLarge) return { kind: 'refused', code: 'invalid', message: error.message };
    if (error instanceof DomainError) {
      const code = error.kind === 'not_found' ? 'not_found' : 'invalid';
      return { kind: 'refused', code, message: error.message };
    }
    if (error instanceof InvalidInput)
      return { kind: 'refused', code: 'invalid', message: `invalid parameters of ${method}` };
    this.#parts.log.error({ ...describeBug(error), method }, 'a call of a worker failed');
    return {
      kind: 'thrown',
      error: 'ServerError',
      message: 'the server cannot store or read checkpoints now',
    };
  }
}

const ENDED: CallFailure = {
  kind: 'refused',
  code: 'not_found',
  message: 'the call that this belongs to has ended',
};
