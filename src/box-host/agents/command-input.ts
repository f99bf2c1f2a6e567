// The input of a command, from all its clients in one order: they share the credit of the call, and what arrives before the
// command has started waits for it.
import type { RunningCall } from './running-call.ts';

type Call = Pick<RunningCall<unknown, unknown>, 'write' | 'end'>;

export class CommandInput {
  /** With nothing where the command was never started. */
  readonly #call: PromiseWithResolvers<Call | undefined> = Promise.withResolvers();
  /** Ends when the input before is taken. */
  #taken: Promise<void> = Promise.resolve();
  #isEnded = false;

  /** The agent was asked to start the command; undefined: it will not be. */
  begin(call: Call | undefined): void {
    this.#call.resolve(call);
  }

  /** Resolves when the command can take more. Does nothing behind its end. */
  write(bytes: Uint8Array): Promise<void> {
    return this.#isEnded ? this.#taken : this.#append((call) => call.write(bytes));
  }

  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    void this.#append(async (call) => call.end());
  }

  #append(work: (call: Call) => Promise<void>): Promise<void> {
    this.#taken = this.#taken.then(async () => {
      const call = await this.#call.promise;
      if (call !== undefined) await work(call);
    });
    return this.#taken;
  }
}
