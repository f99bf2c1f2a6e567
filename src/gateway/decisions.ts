// Decides requests: asks the owner for the target of each and whether its client may use it, and writes the head that is sent. An
// owner that hangs holds a request no longer than its deadline, and a bounded number of requests.
import { describeBug, type Log } from '../base/log.ts';
import { compileNames, type NameTest } from '../http1/field-name.ts';
import type { Client } from './context.ts';
import type { Exchange } from './exchange.ts';
import { type GatewayLimits, RETRY_MS } from './limits.ts';
import { Refusal, refuse } from './refusal.ts';
import { canonicalHead, type RequestPlan, valuesOf } from './request-plan.ts';
import type { Authorize, FindTarget, GatewayRequest } from './target.ts';

export type DecisionOptions = {
  readonly findTarget: FindTarget;
  readonly authorize: Authorize;
  readonly log: Log;
  /** Fields of requests that hold credentials of callers, besides Authorization, Cookie and X-Api-Key; in lower case. */
  readonly credentialFields?: readonly string[];
};

const CREDENTIAL_FIELDS: readonly string[] = ['authorization', 'cookie', 'x-api-key'];
const NO_CREDENTIALS: readonly string[] = [];
const NO_COOKIES: ReadonlySet<string> = new Set();
const MAX_WITHHELD_TESTS = 64;

export class Decisions {
  readonly #options: DecisionOptions;
  readonly #limits: GatewayLimits;
  readonly #pending = new Set<Pending>();
  /** Compiled for each list of credentials that grants pass. */
  readonly #withheldTests = new Map<string, NameTest>();

  constructor(options: DecisionOptions, limits: GatewayLimits) {
    this.#options = options;
    this.#limits = limits;
  }

  /** The head that is sent, or why none is. Never rejects. */
  decide(exchange: Exchange, client: Client): Promise<Buffer | Refusal> {
    if (this.#pending.size >= this.#limits.maxDeciding)
      return Promise.resolve(refuse('overloaded', { retryAfterMs: RETRY_MS }));
    const pending = new Pending(exchange, client, this.#pending);
    exchange.deciding = pending;
    void this.#ask(pending, exchange, client).then((decision) => pending.settle(decision));
    return pending.promise;
  }

  /** Called at intervals. */
  expire(nowMs: number): void {
    for (const pending of this.#pending) {
      // In the order in which they began.
      if (nowMs - pending.startedMs < this.#limits.decideMs) return;
      this.#options.log.warn('a request was not decided in time');
      pending.giveUp(refuse('decision_timeout', { retryAfterMs: RETRY_MS }));
    }
  }

  async #ask(pending: Pending, exchange: Exchange, client: Client): Promise<Buffer | Refusal> {
    const { request } = pending;
    try {
      const target = await this.#options.findTarget(request);
      if (target === undefined) return refuse('target_not_found');
      if (target instanceof Refusal) return target;
      // The deadline has passed, or the client has left.
      if (!this.#pending.has(pending)) return refuse('internal_error');
      exchange.target = target;
      const grant = await this.#options.authorize(request, target);
      if (grant instanceof Refusal) return grant;
      exchange.hold(grant, client);
      if (grant.signal?.aborted === true) return refuse('forbidden');
      exchange.path = pathWithout(target.prefix, exchange.plan.target);
      return canonicalHead(exchange.plan, {
        withheld: this.#withheld(grant.passes ?? NO_CREDENTIALS),
        withoutCookies: grant.withoutCookies ? new Set(grant.withoutCookies) : NO_COOKIES,
        mapCookies: grant.mapCookies,
        added: grant.adds,
        clientAddress: grant.client?.address ?? client.remoteAddress,
        scheme: grant.client?.scheme ?? client.scheme,
      });
    } catch (error) {
      this.#options.log.error(describeBug(error), 'a request could not be decided');
      return refuse('internal_error');
    }
  }

  #withheld(passes: readonly string[]): NameTest {
    const { credentialFields = NO_CREDENTIALS } = this.#options;
    const key = passes.join(',');
    const known = this.#withheldTests.get(key);
    if (known) return known;
    const test = compileNames(
      [...CREDENTIAL_FIELDS, ...credentialFields].filter((name) => !passes.includes(name)),
    );
    if (this.#withheldTests.size < MAX_WITHHELD_TESTS) this.#withheldTests.set(key, test);
    return test;
  }
}

/** Throws for a path that does not begin with the prefix: another one would be forwarded than was authorized. */
function pathWithout(prefix: string | undefined, target: string): string {
  if (prefix === undefined) return target;
  const rest = target.startsWith(prefix) ? target.slice(prefix.length) : undefined;
  if (rest === undefined || !/^(?:[/?]|$)/.test(rest))
    throw new Error('the prefix of a target is not that of the path of its request');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** A request that waits for its decision. A class: with closures in its place, collections of garbage took several times as long. */
class Pending {
  readonly startedMs: number = performance.now();
  readonly request: AskedRequest;
  readonly promise: Promise<Buffer | Refusal>;
  readonly #exchange: Exchange;
  readonly #all: Set<Pending>;
  readonly #abort = new LazyAbort();
  readonly #resolve: (decision: Buffer | Refusal) => void;

  constructor(exchange: Exchange, client: Client, all: Set<Pending>) {
    const { promise, resolve } = Promise.withResolvers<Buffer | Refusal>();
    this.promise = promise;
    this.#resolve = resolve;
    this.request = new AskedRequest(exchange.plan, client, this.#abort);
    this.#exchange = exchange;
    this.#all = all;
    all.add(this);
  }

  /** Only the first one counts. */
  settle(decision: Buffer | Refusal): void {
    if (!this.#all.delete(this)) return;
    this.#exchange.deciding = undefined;
    this.#resolve(decision);
  }

  /** The same, and the owner may stop. */
  giveUp(decision: Refusal): void {
    this.settle(decision);
    this.#abort.abort();
  }

  /** The client has left: nobody reads this refusal. */
  leave(): void {
    this.giveUp(refuse('internal_error'));
  }
}

/** Most owners never ask for the signal, and a controller costs as much as the rest of a decision. */
class LazyAbort {
  #controller: AbortController | undefined;
  #isAborted = false;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isAborted) this.#controller.abort();
    return this.#controller.signal;
  }

  abort(): void {
    this.#isAborted = true;
    this.#controller?.abort();
  }
}

/** What the owner is asked. No literal: with a getter each gets a shape of its own, which is slow and burdens garbage collection. */
class AskedRequest implements GatewayRequest {
  readonly method: string;
  readonly host: string;
  readonly target: string;
  readonly isUpgrade: boolean;
  readonly clientAddress: string | undefined;
  readonly #plan: RequestPlan;
  readonly #abort: LazyAbort;

  constructor(plan: RequestPlan, { remoteAddress }: Client, abort: LazyAbort) {
    this.method = plan.method;
    this.host = plan.host;
    this.target = plan.target;
    this.isUpgrade = plan.isUpgrade;
    this.clientAddress = remoteAddress;
    this.#plan = plan;
    this.#abort = abort;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  values(name: string): readonly string[] {
    return valuesOf(this.#plan, name);
  }
}
