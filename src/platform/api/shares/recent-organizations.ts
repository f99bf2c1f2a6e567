// Which organizations asked a process for something lately, and so use its processors now. The latest two are remembered, and
// no more: what counts is whether there is another one than the one that asks.

type Seen = { readonly organization: string; readonly atMs: number };

export class RecentOrganizations {
  readonly #windowMs: number;
  readonly #now: () => number;
  #latest: Seen | undefined;
  /** The latest of all others than `#latest`. */
  #other: Seen | undefined;

  /** `now` is monotonic, in milliseconds. Who did not ask for `windowMs` is not active any more. */
  constructor(options: { readonly windowMs: number; now(): number }) {
    this.#windowMs = options.windowMs;
    this.#now = () => options.now();
  }

  note(organization: string): void {
    if (this.#latest?.organization !== organization) this.#other = this.#latest;
    this.#latest = { organization, atMs: this.#now() };
  }

  /** Whether another organization is active. */
  hasOtherThan(organization: string): boolean {
    const other = this.#latest?.organization === organization ? this.#other : this.#latest;
    return this.#restMs(other) > 0;
  }

  /** Milliseconds until `hasOtherThan` changes for some organization, if none asks until then; 0 when it cannot change. */
  changesInMs(): number {
    return this.#restMs(this.#other) || this.#restMs(this.#latest);
  }

  #restMs(seen: Seen | undefined): number {
    return seen === undefined ? 0 : Math.max(0, seen.atMs + this.#windowMs - this.#now());
  }
}
