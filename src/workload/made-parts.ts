// What was made for one workload, undone in the reverse order when it ends or does not begin.
import type { Log } from '../base/log.ts';

type Part = { readonly name: string; undo(): Promise<unknown> | void };

export class MadeParts {
  readonly #id: string;
  readonly #log: Log;
  readonly #parts: Part[] = [];

  constructor(id: string, log: Log) {
    this.#id = id;
    this.#log = log;
  }

  add(name: string, undo: Part['undo']): void {
    this.#parts.push({ name, undo });
  }

  /** Never rejects: one part that stays keeps no other one. False: something is left. */
  async undo(): Promise<boolean> {
    let isGone = true;
    for (const { name, undo } of this.#parts.splice(0).reverse()) {
      try {
        await undo();
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#log.warn(
          { workload: this.#id, part: name, reason },
          'a part of a workload that has ended is left',
        );
        isGone = false;
      }
    }
    return isGone;
  }
}
