// What the owner of a gateway decides for it: where a request goes and who may send it. The gateway knows nothing of what its
// targets are.
import type { Duplex } from 'node:stream';
import type { Refusal } from './refusal.ts';

export type Target = {
  /** For records. Never sent. */
  readonly name: string;
  readonly address: TargetAddress;
  /** Removed from the path that is forwarded, which begins with it: `/boxes/1`. The rest is forwarded byte for byte. */
  readonly prefix?: string;
  /**
   * The fields of a response as the client gets them, name, value, name, value, …: given without those of one hop. Fields that
   * frame the content must stay.
   */
  responseFields?(fields: readonly string[], status: number): readonly string[];
  /** Fields of the gateway's own responses to this request, besides those of every one. */
  readonly refusalFields?: readonly (readonly [name: string, value: string])[];
};

/** Checked by the owner: nothing is resolved or filtered here. */
export type TargetAddress =
  | { readonly socketPath: string }
  | { readonly host: string; readonly port: number }
  | {
      /**
       * Called once a request is authorized, for a connection that serves this request alone; any Duplex will do. The signal
       * aborts when the connection is not wanted any more: one that arrives later is destroyed. An error is a 502.
       */
      connect(signal: AbortSignal): Promise<Duplex | Refusal>;
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
  /** The value of each Cookie field that passes as the target gets it; '' is none. Without line ends. */
  mapCookies?: (value: string) => string;
  /** Fields that the target gets besides, name and value, without line ends. At most 1 KiB; what clients send by these names is for the owner to withhold. */
  readonly adds?: readonly (readonly [name: string, value: string])[];
  /** Who the client is where a trusted proxy says it: by default the peer of the connection. */
  readonly client?: { readonly address?: string | undefined; readonly scheme?: 'http' | 'https' | undefined };
  /** Aborted when the client of an upgraded connection is to connect again: it is asked to. */
  readonly leaving?: AbortSignal;
  /** Aborted when the client may use the target no longer: a request that runs, or an upgraded connection, is cut. */
  readonly signal?: AbortSignal;
  /** Called once: the request has ended, or was given up before it began. */
  onEnd?(): void;
};

type Decision<T> = T | Promise<T>;

/** Undefined is a 404. `refuse('target_unavailable', {retryAfterMs})` says when to ask again. */
export type FindTarget = (request: GatewayRequest) => Decision<Target | Refusal | undefined>;

export type Authorize = (request: GatewayRequest, target: Target) => Decision<Grant | Refusal>;
