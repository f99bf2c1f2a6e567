// Failure of the dial that finds out what HTTP version an upstream speaks, before the first request. It is reported once, to
// that request, instead of dialling again; later requests dial, because the upstream may be back.
import type { Policy } from '../../policy/policy.ts';
import type { Refusal } from '../refusal.ts';

const VALID_MS = 2_000;

export class SpeculativeDialFailure {
  #refusal: Refusal | undefined;
  readonly #policy: Policy;
  readonly #failedMs: number = performance.now();

  constructor(refusal: Refusal, policy: Policy) {
    this.#refusal = refusal;
    this.#policy = policy;
  }

  /** The refusal, at most once, within two seconds, and only for a request under the same policy. */
  take(policy: Policy): Refusal | undefined {
    const refusal = this.#refusal;
    this.#refusal = undefined;
    const isCurrent = policy === this.#policy && performance.now() - this.#failedMs < VALID_MS;
    return isCurrent ? refusal : undefined;
  }
}
