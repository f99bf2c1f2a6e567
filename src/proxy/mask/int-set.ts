// A set of 32-bit integers in about ten bytes each, a fraction of what a Set takes: a mask may contain a hundred thousand.

const INITIAL_SLOTS = 64;
/** Random, so that nobody can choose values that share a slot. */
const MULTIPLIER = (Math.random() * 2 ** 32) | 1;

export class IntSet {
  /** 0 marks a free slot. */
  #slots = new Int32Array(INITIAL_SLOTS);
  #used = 0;
  #hasZero = false;

  get bytes(): number {
    return this.#slots.byteLength;
  }

  get size(): number {
    return this.#used + (this.#hasZero ? 1 : 0);
  }

  add(value: number): void {
    if (value === 0) {
      this.#hasZero = true;
      return;
    }
    const slot = this.#slotOf(value);
    if (this.#slots[slot] === value) return;
    this.#slots[slot] = value;
    this.#used += 1;
    if (this.#used * 2 > this.#slots.length) this.#grow();
  }

  has(value: number): boolean {
    return value === 0 ? this.#hasZero : this.#slots[this.#slotOf(value)] === value;
  }

  /** In no order. */
  forEach(take: (value: number) => void): void {
    if (this.#hasZero) take(0);
    for (let slot = 0; slot < this.#slots.length; slot += 1) {
      const value = this.#slots[slot] as number; // the slot is inside
      if (value !== 0) take(value);
    }
  }

  /** Where the value is, or belongs. At least half of the slots are free. */
  #slotOf(value: number): number {
    const last = this.#slots.length - 1;
    // The upper bits of the product depend on all bits of the value.
    let slot = Math.imul(value, MULTIPLIER) >>> Math.clz32(last);
    while (this.#slots[slot] !== 0 && this.#slots[slot] !== value) slot = (slot + 1) & last;
    return slot;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new Int32Array(before.length * 2);
    for (const value of before) if (value !== 0) this.#slots[this.#slotOf(value)] = value;
  }
}
