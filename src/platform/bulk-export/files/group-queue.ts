// The groups of rows of a run, one at a time: who takes a group has the only reference to it, so that it is free once it is written.
import type { RowGroup } from './row-group.ts';

export class GroupQueue {
  readonly #groups: AsyncGenerator<RowGroup>;
  #next: RowGroup | undefined;

  constructor(groups: AsyncGenerator<RowGroup>) {
    this.#groups = groups;
  }

  /** Whether there is another one, which `take` gives then. */
  async hasMore(): Promise<boolean> {
    if (this.#next === undefined) {
      const { done, value } = await this.#groups.next();
      this.#next = done === true ? undefined : value;
    }
    return this.#next !== undefined;
  }

  take(): RowGroup {
    const taken = this.#next;
    if (taken === undefined) throw new Error('there is no group to take');
    this.#next = undefined;
    return taken;
  }

  async close(): Promise<void> {
    this.#next = undefined;
    await this.#groups.return(undefined);
  }
}
