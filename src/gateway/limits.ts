// Every limit and timeout of the gateway, with its default. A timeout is an idle timeout unless it is called a deadline: a
// total limit would cut long streams.
import type { HeadLimits } from '../http1/head-parser.ts';

const limits = {
  /** Client connections, upgraded ones included. */
  maxConnections: 4_096,
  /** Client connections from one address. */
  maxConnectionsPerAddress: 256,
  maxHeadBytes: 16_384,
  maxFields: 100,
  maxTargetBytes: 8_192,
  /** Deadline for a request head, from its first byte. */
  headMs: 10_000,
  /** How long a connection may wait for its next request. */
  keepAliveMs: 60_000,
  /** Requests that wait for `findTarget` or `authorize`. */
  maxDeciding: 1_024,
  /** Deadline for both together. */
  decideMs: 10_000,
  /** Deadline for the connection to the target. */
  connectMs: 10_000,
  /** How long a client may be silent within a request body, or not read its response. */
  clientIdleMs: 120_000,
  /** How long a target may be silent while its response is due or being received. */
  responseIdleMs: 600_000,
  /** The same once the client has sent its FIN: it may have closed its socket, or only its half of the connection. */
  finWaitMs: 10_000,
  /** Silence in both directions of an upgraded connection. */
  upgradedIdleMs: 3_600_000,
  /** The same once one side of it has sent its FIN. */
  halfClosedMs: 60_000,
};

export type GatewayLimits = Readonly<typeof limits>;
export const defaultLimits: GatewayLimits = Object.freeze(limits);

export function headLimitsOf({ maxHeadBytes, maxFields, maxTargetBytes }: GatewayLimits): HeadLimits {
  return Object.freeze({ maxHeadBytes, maxFields, maxTargetBytes });
}

/** How long a connection stays open after our FIN: what the client still sends is discarded. */
export const LINGER_MS = 1_000;
/** TCP asks this long after the last byte whether a peer is still there: event streams and WebSockets may be silent for long. */
export const KEEP_ALIVE_PROBE_MS = 30_000;
/** What a client may send ahead of the response that is due; then its socket is not read until that response is sent. */
export const MAX_AHEAD_BYTES = 16_384;
/** How long a connection to a target waits for its next request. Servers of Node close after five seconds. */
export const TARGET_KEEP_ALIVE_MS = 4_000;
/** How long a body waits for `100 Continue` of the target. */
export const CONTINUE_MS = 1_000;
/** What a refusal for too many connections, or of a gateway that drains, asks the client to wait. */
export const RETRY_MS = 1_000;
