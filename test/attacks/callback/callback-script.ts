// The script of a row of stage `callback`: the callback entry, what the endpoint does with each call, and what happens
// meanwhile. Bytes are latin1 strings. `{CALLBACK}`, `{SECURE}` (the same endpoint over TLS, for cb.test), `{ELSEWHERE}`,
// `{PROXY}` and `{ADMIN}` are ports. Independent of the proxy.
import type { AttackRow } from '../row.ts';

export type CallbackStep =
  | { readonly send: string }
  /** 200 with this JSON. */
  | { readonly json: unknown }
  /** 200 with these `headers`. */
  | { readonly headers: unknown }
  /** Each byte in a separate write. */
  | { readonly drip: string }
  /** The same bytes until the connection is closed. */
  | { readonly flood: string }
  /** Waits for the play's `release`. */
  | 'hold'
  /** Waits until the other side has closed or reset the connection. */
  | 'closed'
  | 'end'
  | 'reset';

export type CallbackPlay =
  /** Requests, sequential (`ask`) or concurrent (`start`), each with its own number as its target. */
  | {
      readonly ask: number;
      readonly to?: string;
      readonly target?: string;
      readonly fields?: readonly string[];
    }
  | { readonly start: number; readonly to?: string }
  /** One concurrent request to each of this number of hosts under `*.api.test`. */
  | { readonly spray: number }
  /** One request on a tunnel that stays open for the next such step. */
  | 'ask_on_the_same_tunnel'
  /** Waits for the responses to the started requests. */
  | 'settle'
  /** The first started client resets its connection. */
  | 'abandon'
  /** Waits until this number of calls has arrived. */
  | { readonly called: number }
  | 'release'
  | { readonly advanceMs: number }
  /** Replaces the document in force; its callbacks override members of the row's entry. */
  | { readonly apply: Document };

export type Document = {
  readonly callbacks?: readonly Readonly<Record<string, unknown>>[];
  readonly rules?: readonly unknown[];
  readonly no_proxy?: readonly string[];
  readonly access_control?: unknown;
};

export type CallbackScript = {
  /** Members of the callback entry that differ from the default. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** The steps for each call; calls beyond the list get a good response that contains the number of the call. */
  readonly responses?: readonly (readonly CallbackStep[])[];
  /** Two sequential requests in one tunnel by default. */
  readonly play?: readonly CallbackPlay[];
  /** `strict`: no private addresses for callbacks; `impatient`: a time limit of a fraction of a second. */
  readonly config?: 'strict' | 'impatient';
};

export type CallbackExpectation =
  | {
      /** The document is rejected with an issue at this path. */
      readonly refusedAt: readonly (string | number)[];
    }
  | {
      /**
       * The outcome of each request in order. `call-1`: served with the headers of that call; `plain`: served without
       * injected headers; `other`: served with those of a rule; `served`: served with those of some call; `failed`: 502,
       * callback resolution failed; `gone`: its client disconnected; `refused`: its CONNECT was refused or not
       * intercepted; otherwise the code of its refusal.
       */
      readonly outcomes: readonly string[];
      readonly calls: number;
      /** The cause in the record of the first failure. */
      readonly cause?: string;
      /** The bodies of the calls. */
      readonly callBodies?: readonly string[];
      /** The fields other than Host that reached the origin with the first injected request. */
      readonly injected?: readonly string[];
    };

export type CallbackRow = AttackRow<CallbackScript, CallbackExpectation>;
