// Acquires the upstream connection for a request: the gate decides, then an idle connection is taken from the pool or a new
// one is dialled. HTTP/1.1 and HTTP/2 both use it, so that no request avoids the gate. It sends nothing: its user writes
// to the connection.
import type { Policy } from '../../policy/policy.ts';
import type { ConnectionScope } from '../context.ts';
import { beginRecord, recordDecision } from './exchange-record.ts';
import { type GateDecision, decideRequest } from './inject.ts';
import { MAX_DECISIONS } from '../limits.ts';
import type { ExchangeRecord } from '../record.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import type { RequestPlan } from './request-plan.ts';

/** Where HTTP/1.1 or HTTP/2 gets its connections. */
export type ConnectionSource<C> = {
  /** Takes an open connection from the pool; undefined if this request can use none. */
  take(policy: Policy, plan: RequestPlan): C | undefined;
  /** Dials a new one. */
  open(policy: Policy, plan: RequestPlan, signal: AbortSignal): Promise<C | Refusal>;
};

export type AcquisitionCallbacks<C> = {
  /** The request may be sent over `connection`; nothing of it has been sent yet. */
  onReady(connection: C, decision: GateDecision): void;
  onRefused(refusal: Refusal): void;
  /** The gate, the connection source or one of these callbacks threw an error. */
  onBug(error: unknown): void;
};

/** Starts with start(). After end(), neither onReady nor onRefused is called. */
export class UpstreamAcquisition<C extends { discard(): void }> {
  /** The record of the latest decision. A new decision, after the policy has changed, starts a new record. */
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

  /** Dials again for the same decision, because the previous connection failed before a response. */
  retry(): void {
    this.#dial();
  }

  end(): void {
    this.#hasEnded = true;
    this.#abort?.abort();
  }

  #onDecision(decision: GateDecision | Refusal): void {
    if (this.#hasEnded) return;
    // The policy can change while a callback is pending. A revoked rule must not be used on a pooled connection.
    if (this.#scope.context.policy() !== this.#policy) return this.#redecide();
    if (isRefusal(decision) && decision.refused === 'callback_failed')
      this.record.callback = this.#callbackName();
    if (isRefusal(decision)) return this.#callbacks.onRefused(decision);
    this.decision = decision;
    recordDecision(this.record, decision);
    const pooled = this.#source.take(this.#policy, this.#plan);
    if (pooled) this.#callbacks.onReady(pooled, decision);
    else this.#dial();
  }

  /** The refusal does not name it. The policy decides the same again, because it is immutable. */
  #callbackName(): string | undefined {
    const { authority, path } = this.#plan.target;
    const verdict = this.#policy.decide(authority, path);
    return verdict.kind === 'intercept' && verdict.apply === 'callback' ? verdict.callback.name : undefined;
  }

  #dial(): void {
    this.#abort = new AbortController();
    const opening = this.#source.open(this.#policy, this.#plan, this.#abort.signal);
    this.#wait(opening, (opened) => {
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

  /** The policy changed before a byte was sent: the request must not be sent under a rule that may have been revoked. */
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
