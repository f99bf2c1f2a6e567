// Every bound of the data path, with its default. Timeouts are idle limits unless they say "deadline":
// a total limit would cut long streams, and model calls stream for minutes.

import type { HeadLimits } from '../http1/head-parser.ts';

export type Timeouts = {
  /** Deadline for a request head, once its first byte is there. */
  readonly headMs: number;
  /** Deadline for a name lookup. */
  readonly dnsMs: number;
  /** Deadline for the TCP connection and the TLS handshake to the host. */
  readonly connectMs: number;
  /** Deadline for the first bytes inside a tunnel, and then for the client's TLS handshake. */
  readonly sniffMs: number;
  readonly handshakeMs: number;
  /** Silence of the host while an answer is due or on its way. */
  readonly responseIdleMs: number;
  /**
   * Silence of a client between requests, inside its body, or while it does not read. Over HTTP/2 a body may rest while
   * its host waits too, as calls that stream in both directions do.
   */
  readonly clientIdleMs: number;
  /** Silence in both directions of a blind tunnel or after 101. */
  readonly tunnelIdleMs: number;
  /** The same once one side has ended. */
  readonly halfClosedMs: number;
  /** How long a body waits for `100 Continue`. */
  readonly continueMs: number;
  /** How long requests in flight may take once the proxy is asked to stop. */
  readonly drainMs: number;
};

export const defaultTimeouts: Timeouts = Object.freeze({
  headMs: 10_000,
  dnsMs: 5_000,
  connectMs: 10_000,
  sniffMs: 10_000,
  handshakeMs: 10_000,
  responseIdleMs: 600_000,
  clientIdleMs: 120_000,
  tunnelIdleMs: 3_600_000,
  halfClosedMs: 60_000,
  continueMs: 1_000,
  drainMs: 30_000,
});

export type Limits = {
  /** Connections of clients that speak for one sandbox. */
  readonly maxConnections: number;
  /** Connections of clients, in all, that have not said yet for which sandbox they speak. */
  readonly maxWaiting: number;
  readonly maxRequestHeadBytes: number;
  readonly maxResponseHeadBytes: number;
  readonly maxFields: number;
  readonly maxTargetBytes: number;
  /** Idle connections kept to hosts, in all and for one host. */
  readonly maxIdleUpstream: number;
  readonly maxIdlePerHost: number;
  readonly maxLookups: number;
  /** Requests that one HTTP/2 connection of a client may have under way. */
  readonly maxStreams: number;
};

export const defaultLimits: Limits = Object.freeze({
  maxConnections: 10_000,
  maxWaiting: 1_024,
  maxRequestHeadBytes: 16_384,
  maxResponseHeadBytes: 32_768,
  maxFields: 100,
  maxTargetBytes: 8_192,
  maxIdleUpstream: 1_024,
  maxIdlePerHost: 256,
  maxLookups: 8,
  maxStreams: 100,
});

/** The bounds of a client's heads, as the parser wants them. */
export function requestHeadLimits(limits: Limits): HeadLimits {
  return headLimits(limits, limits.maxRequestHeadBytes, requestLimits);
}

/** The bounds of a host's heads, as the parser wants them. */
export function responseHeadLimits(limits: Limits): HeadLimits {
  return headLimits(limits, limits.maxResponseHeadBytes, responseLimits);
}

/** The same object for each head, for as long as the limits stay as they are. */
function headLimits(limits: Limits, maxHeadBytes: number, memo: WeakMap<Limits, HeadLimits>): HeadLimits {
  const { maxFields, maxTargetBytes } = limits;
  const known = memo.get(limits);
  const isCurrent = known?.maxHeadBytes === maxHeadBytes && known.maxFields === maxFields;
  if (isCurrent && known.maxTargetBytes === maxTargetBytes) return known;
  const made: HeadLimits = Object.freeze({ maxHeadBytes, maxFields, maxTargetBytes });
  memo.set(limits, made);
  return made;
}

const requestLimits = new WeakMap<Limits, HeadLimits>();
const responseLimits = new WeakMap<Limits, HeadLimits>();

/** How long a connection that we have ended may take to go. */
export const LINGER_MS = 1_000;
/** What a client may send ahead of the answer it waits for. More ends the connection after that answer. */
export const MAX_AHEAD_BYTES = 16_384;
/** Interim responses of one exchange. */
export const MAX_INTERIM_RESPONSES = 20;
export const MAX_INTERIM_BYTES = 65_536;
/** Answers of one lookup that are used; every one of them is checked before any is dialled. */
export const MAX_ADDRESSES = 16;
/** How often one request is judged, because the rules change while its host is dialled, before it is given up. */
export const MAX_DECISIONS = 10;
/** What a host may send of one HTTP/2 stream before we have passed it on: it waits in our memory. */
export const MAX_STREAM_WINDOW_BYTES = 262_144;
/** What the streams of one session may have under way together: 16 of them at full speed. */
export const SESSION_WINDOW_BYTES: number = 16 * MAX_STREAM_WINDOW_BYTES;
