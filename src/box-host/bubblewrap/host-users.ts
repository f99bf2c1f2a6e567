// Gives each box a user of the host of its own, who has no account and owns nothing else.

/** Above those of accounts, below those that other programs take for the user namespaces of containers. */
export const defaultUserRange: UserRange = { first: 200_000, count: 60_000 };

export type UserRange = { readonly first: number; readonly count: number };

export class HostUsers {
  readonly #range: UserRange;
  readonly #taken: Set<number>;

  constructor(range: UserRange, taken: Iterable<number>) {
    this.#range = range;
    this.#taken = new Set(taken);
  }

  /** The lowest that is free. */
  take(): number {
    const { first, count } = this.#range;
    for (let uid = first; uid < first + count; uid += 1) {
      if (this.#taken.has(uid)) continue;
      this.#taken.add(uid);
      return uid;
    }
    throw new Error(`all ${count} host users from ${first} on belong to boxes`);
  }

  release(uid: number): void {
    this.#taken.delete(uid);
  }
}
