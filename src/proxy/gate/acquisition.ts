// From a request's plan to a connection that may carry it: the gate, then a pooled connection or a fresh one, judged
// anew where the rules changed while it was dialled. Both versions of HTTP come this way, so that neither has a gate of
// its own. It sends nothing; what goes over the connection is its owner's.
import type { Policy } from '../../policy/policy.ts';
import type { ConnectionScope } from '../context.ts';
import { beginRecord, notePassage } from './exchange-record.ts';
import { type Passage, judgeRequest } from './inject.ts';
import { MAX_JUDGEMENTS } from '../limits.ts';
import type { ExchangeRecord } from '../record.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import type { RequestPlan } from './request-plan.ts';

/** How its version of HTTP comes by connections. */
export type Lender<C> = {
  /** One that stands and that this request may use. */
  take(policy: Policy): C | undefined;
  open(policy: Policy, signal: AbortSignal): Promise<C | Refusal>;
};

export type Approaching<C> = {
  /** The gate let it pass as `passage` says; nothing has left yet. */
  onReady(connection: C, passage: Passage): void;
  onRefused(refusal: Refusal): void;
  /** Something on the way threw. */
  onBug(error: unknown): void;
};

/** Begins with `begin`; nothing is heard of it after `end`. */
export class Approach<C extends { discard(): void }> {
  /** Of the judgement that counts: replaced where the rules changed on the way. */
  record: ExchangeRecord;
  passage: Passage | undefined;
  readonly #scope: ConnectionScope;
  readonly #plan: RequestPlan;
  readonly #lender: Lender<C>;
  readonly #owner: Approaching<C>;
  #policy: Policy;
  #abort: AbortController | undefined;
  #judgements = 0;
  #isOver = false;

  constructor(scope: ConnectionScope, plan: RequestPlan, lender: Lender<C>, owner: Approaching<C>) {
    this.#scope = scope;
    this.#plan = plan;
    this.#lender = lender;
    this.#owner = owner;
    this.#policy = scope.context.policy();
    this.record = beginRecord(scope, this.#policy.revision, plan);
  }

  begin(): void {
    const { egress, callbacks, scrubsBodies } = this.#scope.context;
    const { target, scheme } = this.#plan;
    const { authority, path } = target;
    const policy = this.#policy;
    const verdict = judgeRequest({ policy, authority, path, scheme, egress, callbacks, scrubsBodies });
    if (verdict instanceof Promise) this.#wait(verdict, (settled) => this.#onVerdict(settled));
    else this.#onVerdict(verdict);
  }

  /** Once more, on a connection that nobody has used: what the first one carried was not answered. */
  again(): void {
    this.#dial();
  }

  end(): void {
    this.#isOver = true;
    this.#abort?.abort();
  }

  #onVerdict(verdict: Passage | Refusal): void {
    if (this.#isOver) return;
    // A callback takes its time: what was revoked meanwhile must not join a connection that stands.
    if (this.#scope.context.policy() !== this.#policy) return this.#judgeAnew();
    if (isRefusal(verdict)) return this.#owner.onRefused(verdict);
    this.passage = verdict;
    notePassage(this.record, verdict);
    const standing = this.#lender.take(this.#policy);
    if (standing) this.#owner.onReady(standing, verdict);
    else this.#dial();
  }

  #dial(): void {
    this.#abort = new AbortController();
    this.#wait(this.#lender.open(this.#policy, this.#abort.signal), (opened) => {
      if (isRefusal(opened)) return this.#isOver ? undefined : this.#owner.onRefused(opened);
      const { passage } = this;
      if (this.#isOver || !passage) opened.discard();
      else if (this.#scope.context.policy() === this.#policy) this.#owner.onReady(opened, passage);
      else {
        opened.discard();
        this.#judgeAnew();
      }
    });
  }

  /** The rules changed before a byte left: what was revoked while the request waited must not leave any more. */
  #judgeAnew(): void {
    this.#judgements += 1;
    if (this.#judgements === MAX_JUDGEMENTS) return this.#owner.onRefused(refuse('rules_changed'));
    this.#policy = this.#scope.context.policy();
    this.record = beginRecord(this.#scope, this.#policy.revision, this.#plan);
    this.begin();
  }

  #wait<T>(pending: Promise<T>, next: (settled: T) => void): void {
    pending.then(next).catch((error: unknown) => this.#owner.onBug(error));
  }
}
