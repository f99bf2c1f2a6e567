// From the plan of a request to the upstream connection that may carry it: the gate decides, then a pooled connection
// is taken or a new one is opened. Both versions of HTTP use it, so that there is one gate. It sends nothing: the caller
// writes to the connection.
import type { Policy } from '../../policy/policy.ts';
import type { ConnectionScope } from '../context.ts';
import { beginRecord, recordDecision } from './exchange-record.ts';
import { type GateDecision, decideRequest } from './inject.ts';
import { MAX_DECISIONS } from '../limits.ts';
import type { ExchangeRecord } from '../record.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import type { RequestPlan } from './request-plan.ts';

/** Where one version of HTTP gets its connections from. */
export type ConnectionSource<C> = {
  /** An open connection of the pool that this request may use. */
  take(policy: Policy): C | undefined;
  /** Dials a new one. */
  open(policy: Policy, signal: AbortSignal): Promise<C | Refusal>;
};

export type AcquisitionCallbacks<C> = {
  /** The request may be sent over `connection`; nothing of it has been sent yet. */
  onReady(connection: C, decision: GateDecision): void;
  onRefused(refusal: Refusal): void;
  /** The gate, the source or a callback threw. */
  onBug(error: unknown): void;
};

/** Begins with `start`; calls nothing back after `end`. */
export class UpstreamAcquisition<C extends { discard(): void }> {
  /** Belongs to the last decision: it is replaced when the policy changes meanwhile. */
  record: ExchangeRecord;
  decision: GateDecision | undefined;
  readonly #scope: ConnectionScope;
  readonly #plan: RequestPlan;
  readonly #source: ConnectionSource<C>;
  readonly #callbacks: AcquisitionCallbacks<C>;
  #policy: Policy;
  #abort: AbortController | undefined;
  #decisions = 0;
  #hasEnded = false;

  constructor(
    scope: ConnectionScope,
    plan: RequestPlan,
    source: ConnectionSource<C>,
    callbacks: AcquisitionCallbacks<C>,
  ) {
    this.#scope = scope;
    this.#plan = plan;
    this.#source = source;
    this.#callbacks = callbacks;
    this.#policy = scope.context.policy();
    this.record = beginRecord(scope, this.#policy.revision, plan);
  }

  start(): void {
    const { egress, callbacks, scrubsBodies } = this.#scope.context;
    const { target, scheme } = this.#plan;
    const { authority, path } = target;
    const policy = this.#policy;
    const decision = decideRequest({ policy, authority, path, scheme, egress, callbacks, scrubsBodies });
    if (decision instanceof Promise) this.#wait(decision, (settled) => this.#onDecision(settled));
    else this.#onDecision(decision);
  }

  /** Opens a new connection for the same decision: the upstream closed the pooled one without a response. */
  retry(): void {
    this.#dial();
  }

  end(): void {
    this.#hasEnded = true;
    this.#abort?.abort();
  }

  #onDecision(decision: GateDecision | Refusal): void {
    if (this.#hasEnded) return;
    // A callback takes time. A rule that was revoked meanwhile must not be used on a pooled connection.
    if (this.#scope.context.policy() !== this.#policy) return this.#redecide();
    if (isRefusal(decision)) return this.#callbacks.onRefused(decision);
    this.decision = decision;
    recordDecision(this.record, decision);
    const pooled = this.#source.take(this.#policy);
    if (pooled) this.#callbacks.onReady(pooled, decision);
    else this.#dial();
  }

  #dial(): void {
    this.#abort = new AbortController();
    this.#wait(this.#source.open(this.#policy, this.#abort.signal), (opened) => {
      if (isRefusal(opened)) return this.#hasEnded ? undefined : this.#callbacks.onRefused(opened);
      const { decision } = this;
      if (this.#hasEnded || !decision) opened.discard();
      else if (this.#scope.context.policy() === this.#policy) this.#callbacks.onReady(opened, decision);
      else {
        opened.discard();
        this.#redecide();
      }
    });
  }

  /** The policy changed before a byte was sent: the request must not be sent by a rule that was revoked meanwhile. */
  #redecide(): void {
    this.#decisions += 1;
    if (this.#decisions === MAX_DECISIONS) return this.#callbacks.onRefused(refuse('rules_changed'));
    this.#policy = this.#scope.context.policy();
    this.record = beginRecord(this.#scope, this.#policy.revision, this.#plan);
    this.start();
  }

  #wait<T>(pending: Promise<T>, next: (settled: T) => void): void {
    pending.then(next).catch((error: unknown) => this.#callbacks.onBug(error));
  }
}
