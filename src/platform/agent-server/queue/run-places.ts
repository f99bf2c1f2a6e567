// The places for runs of one process. Of several users one may not hold all of them: a part stays for the others, however many
// runs of that one wait. Pure.

/** Of a user, where runs have one. */
const SHARE = 3 / 4;

export class RunPlaces {
  readonly #places: number;
  readonly #share: number;
  /** Runs by their party, with those that are being claimed. */
  readonly #held = new Map<string, number>();
  #taken = 0;
  #reserved = 0;
  #onReleased: (() => void)[] = [];

  constructor(places: number) {
    this.#places = places;
    this.#share = Math.max(1, Math.ceil(places * SHARE));
  }

  get free(): number {
    return this.#places - this.#taken - this.#reserved;
  }

  /** Places for runs that are being claimed. */
  get reserved(): number {
    return this.#reserved;
  }

  /** For one run, until `release`. False: there is none for this party. */
  reserve(party: string): boolean {
    if (this.free <= 0 || this.#isAtShare(party)) return false;
    this.#reserved += 1;
    this.#add(party, 1);
    return true;
  }

  release(party: string): void {
    this.#reserved -= 1;
    this.#add(party, -1);
    for (const resolve of this.#onReleased.splice(0)) resolve();
  }

  /** When a place that was reserved is released. */
  settled(): Promise<void> {
    return new Promise((resolve) => this.#onReleased.push(resolve));
  }

  /** Runs of the party may wait, although there are places. */
  isHeldUp(party: string): boolean {
    return this.#isAtShare(party);
  }

  take(party: string): void {
    this.#taken += 1;
    this.#add(party, 1);
  }

  leave(party: string): void {
    this.#taken -= 1;
    this.#add(party, -1);
  }

  /** What may be claimed at once, whosever runs it finds. */
  batch(): { readonly places: number; readonly excluded: readonly string[] } {
    const parties = [...this.#held.keys()].filter((party) => party !== '');
    const excluded = parties.filter((party) => this.#isAtShare(party));
    const others = parties.filter((party) => !excluded.includes(party));
    const most = Math.max(0, ...others.map((party) => this.#held.get(party) ?? 0));
    return { places: Math.max(1, Math.min(this.free, this.#share - most)), excluded };
  }

  #isAtShare(party: string): boolean {
    return party !== '' && (this.#held.get(party) ?? 0) >= this.#share;
  }

  #add(party: string, count: number): void {
    const held = (this.#held.get(party) ?? 0) + count;
    if (held === 0) this.#held.delete(party);
    else this.#held.set(party, held);
  }
}
