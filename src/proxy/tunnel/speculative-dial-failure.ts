// What a dial said that was made before its request was there. The first request hears it instead of waiting for a
// second one to fail; for later ones the host may be back.
import type { Policy } from '../../policy/policy.ts';
import type { Refusal } from '../refusal.ts';

const REPORTED_MS = 2_000;

export class RefusedDial {
  #refusal: Refusal | undefined;
  readonly #policy: Policy;
  readonly #refusedMs: number = performance.now();

  constructor(refusal: Refusal, policy: Policy) {
    this.#refusal = refusal;
    this.#policy = policy;
  }

  /** Once, soon after, and for a request that the same rules judge. */
  take(policy: Policy): Refusal | undefined {
    const refusal = this.#refusal;
    this.#refusal = undefined;
    const isCurrent = policy === this.#policy && performance.now() - this.#refusedMs < REPORTED_MS;
    return isCurrent ? refusal : undefined;
  }
}
