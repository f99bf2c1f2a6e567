// What a row of stage `callback` says: the entry that asks an endpoint for headers, what the endpoint does with each call,
// and what happens meanwhile. Bytes are strings of latin1. `{CALLBACK}`, `{SECURE}` (its TLS twin, for cb.test),
// `{ELSEWHERE}`, `{PROXY}` and `{ADMIN}` stand for ports. It knows no proxy.
import type { AttackRow } from '../row.ts';

export type CallbackStep =
  | { readonly send: string }
  /** 200 with this JSON. */
  | { readonly json: unknown }
  /** 200 with `headers` of these. */
  | { readonly headers: unknown }
  /** Every byte in a write of its own. */
  | { readonly drip: string }
  /** The same bytes until the connection is gone. */
  | { readonly flood: string }
  /** Waits for the play's `release`. */
  | 'hold'
  /** Waits until the other side has ended or broken the connection. */
  | 'closed'
  | 'end'
  | 'reset';

export type CallbackPlay =
  /** Requests, one after the other or at once, each with its own number as its target. */
  | {
      readonly ask: number;
      readonly to?: string;
      readonly target?: string;
      readonly fields?: readonly string[];
    }
  | { readonly start: number; readonly to?: string }
  /** One to each of these many hosts under `*.api.test`, at once. */
  | { readonly spray: number }
  /** One on a tunnel that stays open for the next of these. */
  | 'ask_on_the_same_tunnel'
  /** The requests that were started are answered. */
  | 'settle'
  /** The first client that was started leaves with a reset. */
  | 'abandon'
  /** Waits until so many calls have come. */
  | { readonly called: number }
  | 'release'
  | { readonly advanceMs: number }
  /** A document in place of the one in force; its callbacks are parts of the row's entry. */
  | { readonly apply: Document };

export type Document = {
  readonly callbacks?: readonly Readonly<Record<string, unknown>>[];
  readonly rules?: readonly unknown[];
  readonly no_proxy?: readonly string[];
  readonly access_control?: unknown;
};

export type CallbackScript = {
  /** Members of the entry that are not as usual. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** For each call what is done with it; those beyond the list get a good answer, which tells the call's number. */
  readonly responses?: readonly (readonly CallbackStep[])[];
  /** Two requests one after the other, in one tunnel, if left out. */
  readonly play?: readonly CallbackPlay[];
  /** `strict`: no private addresses for callbacks; `impatient`: they have a fraction of a second. */
  readonly config?: 'strict' | 'impatient';
};

export type CallbackExpectation =
  | {
      /** The document is refused, and this is where. */
      readonly refusedAt: readonly (string | number)[];
    }
  | {
      /**
       * Of each request in order: `call-1`: the headers of that call were injected, and it was answered; `plain`:
       * nothing was; `other`: a rule's; `served`: those of some call; `failed`: 502, callback resolution failed; `gone`: its client left; `refused`:
       * its CONNECT was, or it was not intercepted; else the code of its refusal.
       */
      readonly outcomes: readonly string[];
      readonly calls: number;
      /** What the record of the first failure says of its cause. */
      readonly cause?: string;
      /** The bodies of the calls. */
      readonly reported?: readonly string[];
      /** Fields that reached the origin with the first request that was injected, beside Host. */
      readonly injected?: readonly string[];
    };

export type CallbackRow = AttackRow<CallbackScript, CallbackExpectation>;
