// What the owner of a gateway decides for it: where a request goes and who may send it. The gateway knows nothing of what its
// targets are.
import type { Refusal } from './refusal.ts';

export type Target = {
  /** For records. Never sent. */
  readonly name: string;
  /** An address that the owner has checked: nothing is resolved or filtered here. */
  readonly address: { readonly socketPath: string } | { readonly host: string; readonly port: number };
};

/** What is asked, before a byte is sent anywhere. */
export type GatewayRequest = {
  readonly method: string;
  /** The Host field as sent, with its port if it has one, in any case, perhaps with a trailing dot. */
  readonly host: string;
  /** Path and query as sent; exactly these bytes are forwarded. */
  readonly target: string;
  readonly isUpgrade: boolean;
  readonly clientAddress: string | undefined;
  /** Aborted when the client has left or the deadline of the decision has passed. */
  readonly signal: AbortSignal;
  /** Every value of a field, in order; `name` in lower case. */
  values(name: string): readonly string[];
};

export type Grant = {
  /** Credential fields that the target may see, in lower case; all others are removed from the request. */
  readonly passes?: readonly string[];
  /** Cookies that are removed where `cookie` passes: those of the gateway's owner. */
  readonly withoutCookies?: readonly string[];
};

type Decision<T> = T | Promise<T>;

/** Undefined is a 404. `refuse('target_unavailable', {retryAfterMs})` says when to ask again. */
export type FindTarget = (request: GatewayRequest) => Decision<Target | Refusal | undefined>;

export type Authorize = (request: GatewayRequest, target: Target) => Decision<Grant | Refusal>;
