// One request of a client until its response is sent: what is known of it, and its one record.
import type { RequestBody } from '../http1/request-body.ts';
import type { GatewayRecord } from './record.ts';
import type { RefusalCode } from './refusal.ts';
import type { RequestPlan } from './request-plan.ts';
import type { Grant, Target } from './target.ts';

/** What a running exchange does when its time is over. */
export type Forwarding = {
  /** Ends the request to the target with a 504, or cuts the response that has begun. */
  expire(): void;
};

export class Exchange {
  readonly plan: RequestPlan;
  readonly body: RequestBody;
  target: Target | undefined;
  /** Path and query as they are forwarded. */
  path: string;
  /** Set while the request is forwarded. */
  forwarding: Forwarding | undefined;
  /** Set until it is decided. */
  deciding: { leave(): void } | undefined;
  status: number | undefined;
  refusal: RefusalCode | undefined;
  bytesUp = 0;
  bytesDown = 0;
  readonly #startedMs: number = performance.now();
  #isRecorded = false;
  #grant: Grant | undefined;

  constructor(plan: RequestPlan, body: RequestBody) {
    this.plan = plan;
    this.body = body;
    this.path = plan.target;
  }

  /** Until the exchange ends. */
  hold(grant: Grant, client: { abort(): void; drain(): void }): void {
    if (this.#isRecorded) return grant.onEnd?.();
    this.#grant = grant;
    const leave = (): void => (this.#isRecorded ? undefined : client.drain());
    grant.leaving?.addEventListener('abort', leave, { once: true });
    const cut = (): void => (this.#isRecorded ? undefined : client.abort());
    grant.signal?.addEventListener('abort', cut, { once: true });
  }

  /** Its client is to connect again. */
  get isLeaving(): boolean {
    return this.#grant?.leaving?.aborted === true;
  }

  /** The record, the first time that the exchange ends. */
  end(end: GatewayRecord['end']): GatewayRecord | undefined {
    if (this.#isRecorded) return undefined;
    this.#isRecorded = true;
    this.deciding?.leave();
    this.#grant?.onEnd?.();
    const { status, refusal, bytesUp, bytesDown } = this;
    return {
      method: this.plan.method,
      target: this.target?.name,
      status,
      refusal,
      end,
      bytesUp,
      bytesDown,
      durationMs: performance.now() - this.#startedMs,
    };
  }
}
