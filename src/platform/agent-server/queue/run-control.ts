// Why the execution of a run must end before its graph has: somebody asked for it, its time is up, its process drains, or
// another process has it.
import type { Cancellation } from '../runs/run-rows.ts';

/** `lost`: this process does not have the run any more, and writes nothing. `drained`: it gives the run back. */
export type Intent = Cancellation | 'timeout' | 'drained' | 'lost';

/** A stronger one replaces a weaker one, also while the graph is about to end. */
const STRENGTH: readonly Intent[] = ['drained', 'timeout', 'interrupt', 'rollback', 'lost'];

export class RunControl {
  readonly #abort: AbortController = new AbortController();
  readonly #lost: AbortController = new AbortController();
  #intent: Intent | undefined;

  /** Aborts with the reason that a worker gets. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Aborts when nothing may be written any more. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  get intent(): Intent | undefined {
    return this.#intent;
  }

  end(intent: Intent): void {
    if (this.#intent === undefined || STRENGTH.indexOf(intent) > STRENGTH.indexOf(this.#intent))
      this.#intent = intent;
    if (intent === 'lost') this.#lost.abort(new Error('another process has the run'));
    this.#abort.abort(intent === 'drained' ? 'lost' : intent);
  }
}
