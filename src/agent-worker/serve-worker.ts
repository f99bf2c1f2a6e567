// A worker from its start to its end: hello, the deployment to load, then calls until the channel ends.
import type { Duplex } from 'node:stream';
import { createSend, type Send, serveChannel } from './channel.ts';
import { Dispatcher, type DispatchedParts } from './dispatcher.ts';
import { LoadError } from './method.ts';
import { ProtocolError } from './protocol/frame.ts';
import { type DeploymentToLoad, type Loaded, type Message, PROTOCOL_VERSION } from './protocol/messages.ts';
import { toThrown } from './thrown-error.ts';

export type LoadedParts = DispatchedParts & { readonly loaded: Loaded };
/** Throws a LoadError. */
export type Load = (deployment: DeploymentToLoad) => Promise<LoadedParts>;

/** Resolves when the channel has ended. Rejects with a ProtocolError when the server broke the protocol. */
export async function serveWorker(socket: Duplex, load: Load): Promise<void> {
  const worker = new Worker(createSend(socket), load);
  await serveChannel(socket, (message, bytes) => worker.receive(message, bytes));
}

class Worker {
  readonly #send: Send;
  readonly #load: Load;
  #isLoading = false;
  #dispatcher: Dispatcher | undefined;

  constructor(send: Send, load: Load) {
    this.#send = send;
    this.#load = load;
    send({ type: 'hello', version: PROTOCOL_VERSION, language: 'javascript', pid: process.pid });
  }

  receive(message: Message, bytes: number): void {
    if (message.type === 'ping') this.#send({ type: 'pong', sequence: message.sequence });
    else if (this.#dispatcher !== undefined) this.#dispatcher.receive(message, bytes);
    else if (message.type === 'load' && !this.#isLoading) void this.#begin(message.deployment);
    else throw new ProtocolError(`a message ${message.type} before ready`);
  }

  async #begin(deployment: DeploymentToLoad): Promise<void> {
    this.#isLoading = true;
    try {
      const { loaded, ...parts } = await this.#load(deployment);
      this.#dispatcher = new Dispatcher(this.#send, parts);
      this.#send({ type: 'ready', loaded });
    } catch (error) {
      const key = error instanceof LoadError ? error.key : 'graphs';
      const { error: name, message } = toThrown(error);
      const text = error instanceof LoadError ? message : `${name}: ${message}`;
      this.#send({ type: 'failed', failure: { key, message: text } });
    }
  }
}
