// The agent's end of the channel: one task for each call, all over one socket. It trusts the box host and checks the form of
// what it receives all the same: a process of the box may have written to the channel.
import type { Duplex } from 'node:stream';
import { AgentCall } from './agent-call.ts';
import { CallError, codeOf } from './call-error.ts';
import {
  decodeCredit,
  encodeFrameHead,
  FROM_HOST,
  type Frame,
  FrameReader,
  type FrameType,
  ProtocolError,
} from './protocol/frame.ts';
import { type CallParams, encodeJson, type Method, parseCall } from './protocol/messages.ts';

/** Runs a call and returns the members of its result. */
export type RunMethod<M extends Method> = (
  call: AgentCall,
  params: Extract<CallParams, { readonly method: M }>,
) => Promise<object>;
export type Methods = { readonly [M in Method]: RunMethod<M> };

export type AgentOptions = {
  readonly methods: Methods;
  /** Whether a process of the box other than the agent lives. */
  hasOtherProcesses(): boolean;
};

/** Serves calls until the channel ends; then every call is aborted. */
export async function serveAgent(channel: Duplex, options: AgentOptions): Promise<void> {
  const agent = new Agent(channel, options);
  const reader = new FrameReader(FROM_HOST);
  try {
    for await (const piece of channel) for (const frame of reader.read(piece)) agent.receive(frame);
  } catch (error) {
    if (!(error instanceof ProtocolError) && !isConnectionError(error)) throw error;
  } finally {
    agent.abortAll();
    channel.destroy();
  }
}

function isConnectionError(error: unknown): boolean {
  return error instanceof Error && 'code' in error;
}

class Agent {
  readonly #channel: Duplex;
  readonly #options: AgentOptions;
  readonly #calls: Map<number, AgentCall> = new Map();
  #lastId = 0;
  /** Those that wait for the channel to drain. */
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(channel: Duplex, options: AgentOptions) {
    this.#channel = channel;
    this.#options = options;
    const wake = (): void => {
      this.#drained?.resolve();
      this.#drained = undefined;
    };
    channel.on('drain', wake).on('close', wake);
  }

  receive({ type, id, payload }: Frame): void {
    if (type === 'ping')
      return void this.#send('pong', 0, Buffer.of(this.#options.hasOtherProcesses() ? 1 : 0));
    if (type === 'call') return this.#begin(id, payload);
    // The call may have ended while this was under way.
    const call = this.#calls.get(id);
    if (type === 'data') call?.receive(payload);
    else if (type === 'end') call?.receiveEnd();
    else if (type === 'credit') call?.receiveCredit(decodeCredit(payload));
    else if (type === 'kill') call?.onKill?.();
    else if (type === 'cancel') call?.abort();
  }

  abortAll(): void {
    for (const call of this.#calls.values()) call.abort();
  }

  #begin(id: number, payload: Buffer): void {
    if (id <= this.#lastId || id % 2 === 0) throw new ProtocolError('a call id that is not new');
    this.#lastId = id;
    const params = parseCall(payload);
    const call = new AgentCall((type, bytes) => this.#send(type, id, bytes));
    this.#calls.set(id, call);
    void this.#run(id, call, params);
  }

  async #run(id: number, call: AgentCall, params: CallParams): Promise<void> {
    try {
      const run = this.#options.methods[params.method] as RunMethod<Method> | undefined;
      if (run === undefined) throw new CallError('UNKNOWN_METHOD');
      const result = await run(call, params);
      this.#calls.delete(id);
      await this.#send('result', id, encodeJson(result));
    } catch (error) {
      this.#calls.delete(id);
      await this.#send('failure', id, encodeJson({ code: codeOf(error) }));
    }
  }

  async #send(type: FrameType, id: number, payload: Buffer): Promise<void> {
    const channel = this.#channel;
    if (channel.destroyed) return;
    channel.cork();
    channel.write(encodeFrameHead(type, id, payload.length));
    const hasCapacity = payload.length === 0 || channel.write(payload);
    channel.uncork();
    if (hasCapacity || channel.destroyed) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }
}
