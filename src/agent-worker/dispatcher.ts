// Runs what the server calls, each as a task of its own, and carries the calls in the other direction.
import { AppCall } from './app/app-call.ts';
import type { AppMethod } from './app/app-method.ts';
import type { Send } from './channel.ts';
import { type Method, type Methods, Refusal } from './method.ts';
import type { AppRequest, WorkerCalls } from './protocol/calls.ts';
import { FrameTooLarge, ProtocolError } from './protocol/frame.ts';
import type { CallFailure, Message } from './protocol/messages.ts';
import { RunningCall } from './running-call.ts';
import { toFailure } from './thrown-error.ts';
import { describeUncaught } from './uncaught.ts';

export type DispatchedParts = { readonly methods: Methods; readonly app: AppMethod | undefined };

type Call = { readonly running: RunningCall; readonly app: AppCall | undefined };
type Received<T extends Message['type']> = Extract<Message, { readonly type: T }>;

export class Dispatcher {
  readonly #send: Send;
  readonly #parts: DispatchedParts;
  readonly #calls: Map<number, Call> = new Map();
  readonly #asked: Map<number, PromiseWithResolvers<unknown>> = new Map();
  #nextId = 0;

  constructor(send: Send, parts: DispatchedParts) {
    this.#send = send;
    this.#parts = parts;
  }

  /** Throws a ProtocolError. What concerns a call that has ended is discarded: it was under way. */
  receive(message: Message, bytes: number): void {
    if (message.type === 'call') return this.#begin(message);
    if (message.type === 'result' || message.type === 'error') return this.#settle(message);
    if (message.type === 'cancel') return this.#calls.get(message.id)?.running.cancel(message.reason);
    if (message.type === 'credit') {
      const call = this.#calls.get(message.id);
      return (call?.app ?? call?.running)?.grant(message.bytes);
    }
    if (message.type !== 'data') throw new ProtocolError(`a message ${message.type} from the server`);
    this.#calls.get(message.id)?.app?.receive(message.base64, message.isLast === true, bytes);
  }

  #begin({ id, method, params }: Received<'call'>): void {
    if (this.#calls.has(id)) throw new ProtocolError('the id of a call that runs');
    const running = new RunningCall(id, this.#send, (of, name, sent) => this.#ask(of, name, sent));
    const app = method === 'http.request' ? new AppCall(id, this.#send, running.signal) : undefined;
    this.#calls.set(id, { running, app });
    // Its code may hold up this process before it has asked the server for anything.
    if (method === 'run.start') running.begin();
    const work = app === undefined ? this.#run(id, method, params, running) : this.#serve(app, params);
    void work
      .catch((error: unknown) => {
        const failure = toFailure(error, running.signal, method.startsWith('auth.'));
        this.#fail(id, failure);
        // For the operator, without its message. An exception of a handler with a status is a response.
        if (failure.kind === 'thrown' && failure.status === undefined)
          running.log('error', `${method}${ofRun(params)} has thrown ${describeUncaught(error)}`);
      })
      .finally(() => this.#calls.delete(id));
  }

  async #run(id: number, name: string, params: unknown, call: RunningCall): Promise<void> {
    const { methods } = this.#parts;
    const method = Object.hasOwn(methods, name) ? methods[name as keyof Methods] : undefined;
    if (method === undefined) throw new Refusal('unsupported', `this worker has no method ${name}`);
    const value = await (method as Method<keyof WorkerCalls>)(params as never, call);
    await call.finish();
    this.#send({ type: 'result', id, value });
  }

  async #serve(call: AppCall, params: unknown): Promise<void> {
    const { app } = this.#parts;
    if (app === undefined) throw new Refusal('unsupported', 'this deployment has no application');
    await call.run(app, params as AppRequest);
  }

  #fail(id: number, error: CallFailure): void {
    this.#send({ type: 'error', id, error });
  }

  async #ask(of: number, method: string, params: unknown): Promise<unknown> {
    const id = this.#nextId;
    this.#nextId += 1;
    const asked = Promise.withResolvers<unknown>();
    this.#asked.set(id, asked);
    try {
      this.#send({ type: 'call', id, method, params, of });
    } catch (error) {
      this.#asked.delete(id);
      if (error instanceof FrameTooLarge) throw new Refusal('invalid', `${method}: ${error.message}`);
      throw error;
    }
    return asked.promise;
  }

  #settle(message: Received<'result' | 'error'>): void {
    const asked = this.#asked.get(message.id);
    if (asked === undefined) throw new ProtocolError('a result of no call');
    this.#asked.delete(message.id);
    if (message.type === 'result') return asked.resolve(message.value);
    const { error } = message;
    const code = error.kind === 'refused' ? error.code : 'invalid';
    asked.reject(new Refusal(code, error.kind === 'cancelled' ? 'the call was cancelled' : error.message));
  }
}

function ofRun(params: unknown): string {
  const isRun = typeof params === 'object' && params !== null && 'run_id' in params;
  return isRun && typeof params.run_id === 'string' ? ` of run ${params.run_id}` : '';
}
