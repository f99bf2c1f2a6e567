// The places of one process for runs that are executed alone, each in a worker of its own. They are few: a run that was lost with its
// worker waits for one, and those who wait are looked for only while there are any. Pure.

export class LonePlaces {
  readonly #places: number;
  #taken = 0;
  #isWanted = false;
  #lastParty: string | undefined;

  constructor(places: number) {
    this.#places = places;
  }

  /** Whose run had a place last: those of others come before it. */
  get lastParty(): string | undefined {
    return this.#lastParty;
  }

  get isWanted(): boolean {
    return this.#isWanted;
  }

  /** Some may wait. */
  want(): void {
    this.#isWanted = true;
  }

  /** How many to claim now, of so many places for runs. */
  ask(free: number): number {
    if (!this.#isWanted) return 0;
    const places = Math.max(0, Math.min(free, this.#places - this.#taken));
    // Until somebody says that there are more.
    if (places > 0) this.#isWanted = false;
    return places;
  }

  take(party: string): void {
    this.#taken += 1;
    this.#lastParty = party;
  }

  leave(): void {
    this.#taken -= 1;
    this.#isWanted = true;
  }
}
