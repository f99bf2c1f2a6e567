// Sends the matches of a search as lines of JSON, many in one frame.
import type { AgentCall } from '../agent-call.ts';

const BLOCK_CHARS = 16 * 1024;

export class LineSender {
  readonly #call: AgentCall;
  #block = '';

  constructor(call: AgentCall) {
    this.#call = call;
  }

  async send(match: object): Promise<void> {
    this.#block += `${JSON.stringify(match)}\n`;
    if (this.#block.length >= BLOCK_CHARS) await this.#flush();
  }

  /** Returns `outcome` when everything is sent. */
  async finish<T>(outcome: T): Promise<T> {
    await this.#flush();
    return outcome;
  }

  async #flush(): Promise<void> {
    if (this.#block === '') return;
    const block = Buffer.from(this.#block);
    this.#block = '';
    await this.#call.sendData('data', block);
  }
}
