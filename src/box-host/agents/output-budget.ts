// The memory for the output of all commands of this box host. A box has a bound of its own, and all boxes share one: who needs
// more when it is used up takes from the box that holds most, so that one tenant cannot use up the memory of the others.
import type { RingMemory } from './output-ring.ts';

export type BudgetLimits = {
  /** For the output of one box. */
  readonly boxBytes: number;
  readonly totalBytes: number;
};

const MEBIBYTE = 1024 * 1024;
export const defaultBudgetLimits: BudgetLimits = { boxBytes: 32 * MEBIBYTE, totalBytes: 256 * MEBIBYTE };

/** Gives back some memory of a box. False where it has none to give, or where `asking` itself holds most. */
export type Reclaim<T> = (asking: T) => boolean;

export class OutputBudget {
  readonly #limits: BudgetLimits;
  readonly #shares: Set<OutputShare> = new Set();
  #totalBytes = 0;

  constructor(limits: BudgetLimits = defaultBudgetLimits) {
    this.#limits = limits;
  }

  get totalBytes(): number {
    return this.#totalBytes;
  }

  createShare(reclaim: Reclaim<unknown>): OutputShare {
    const share = new OutputShare(reclaim, {
      take: (bytes, asking) => this.#take(share, bytes, asking),
      add: (bytes) => {
        this.#totalBytes += bytes;
      },
      close: () => this.#shares.delete(share),
    });
    this.#shares.add(share);
    return share;
  }

  #take(share: OutputShare, bytes: number, asking: unknown): boolean {
    const { boxBytes, totalBytes } = this.#limits;
    while (share.bytes + bytes > boxBytes) if (!share.reclaim(asking)) return false;
    while (this.#totalBytes + bytes > totalBytes) if (!this.#largest(share).reclaim(asking)) return false;
    return true;
  }

  #largest(first: OutputShare): OutputShare {
    let largest = first;
    for (const share of this.#shares) if (share.bytes > largest.bytes) largest = share;
    return largest;
  }
}

type Owner = {
  take(bytes: number, asking: unknown): boolean;
  add(bytes: number): void;
  close(): void;
};

/** What one box holds. */
export class OutputShare {
  readonly reclaim: Reclaim<unknown>;
  readonly #owner: Owner;
  #bytes = 0;
  #isClosed = false;

  constructor(reclaim: Reclaim<unknown>, owner: Owner) {
    this.reclaim = reclaim;
    this.#owner = owner;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** False where there is no space for `asking`. What is required is held in any case. */
  take(bytes: number, asking: unknown, isRequired: boolean): boolean {
    if (!this.#owner.take(bytes, asking) && !isRequired) return false;
    this.#add(bytes);
    return true;
  }

  give(bytes: number): void {
    this.#add(-bytes);
  }

  memoryFor(asking: unknown): RingMemory {
    return {
      take: (bytes, isRequired) => this.take(bytes, asking, isRequired),
      give: (bytes) => this.give(bytes),
    };
  }

  /** Nothing of the box is kept any more. */
  close(): void {
    this.#add(-this.#bytes);
    this.#isClosed = true;
    this.#owner.close();
  }

  #add(bytes: number): void {
    if (this.#isClosed) return;
    this.#bytes += bytes;
    this.#owner.add(bytes);
  }
}
