// Every limit and timeout of the data path, with its default. A timeout is an idle timeout unless it is called a deadline:
// a total limit would cut long streams, and model calls stream for minutes.

import type { HeadLimits } from '../http1/head-parser.ts';

const timeouts = {
  /** Deadline for a request head, from its first byte. */
  headMs: 10_000,
  /** Deadline for a name lookup. */
  dnsMs: 5_000,
  /** Deadline for the TCP connection to the upstream and its TLS handshake. */
  connectMs: 10_000,
  /** Deadline for the first bytes inside a tunnel, and then for the client's TLS handshake. */
  sniffMs: 10_000,
  handshakeMs: 10_000,
  /** How long the upstream may be silent while a response is due or being received. */
  responseIdleMs: 600_000,
  /**
   * How long a client may be silent between requests or within a body, or not read its response. Over HTTP/2 a body may
   * pause while its upstream is silent too, as calls that stream in both directions do.
   */
  clientIdleMs: 120_000,
  /** Silence in both directions of a blind tunnel, or after a 101. */
  tunnelIdleMs: 3_600_000,
  /** The same once one side has sent its FIN. */
  halfClosedMs: 60_000,
  /** How long a body waits for `100 Continue`. */
  continueMs: 1_000,
  /** How long running requests may take once the proxy is asked to stop. */
  drainMs: 30_000,
};

export type Timeouts = Readonly<typeof timeouts>;
export const defaultTimeouts: Timeouts = Object.freeze(timeouts);

const limits = {
  /** Client connections of one sandbox. */
  maxConnections: 10_000,
  /** Unauthenticated client connections of all listeners. */
  maxWaiting: 1_024,
  maxRequestHeadBytes: 16_384,
  maxResponseHeadBytes: 32_768,
  maxFields: 100,
  maxTargetBytes: 8_192,
  /** Idle connections to upstreams in the pool, in all and for one host. */
  maxIdleUpstream: 1_024,
  maxIdlePerHost: 256,
  maxLookups: 8,
  /** Concurrent streams of one client's HTTP/2 connection. */
  maxStreams: 100,
};

export type Limits = Readonly<typeof limits>;
export const defaultLimits: Limits = Object.freeze(limits);

/** The parser's limits for the heads of clients. */
export function requestHeadLimits(limits: Limits): HeadLimits {
  return headLimits(limits, limits.maxRequestHeadBytes, requestLimits);
}

/** The parser's limits for the heads of upstreams. */
export function responseHeadLimits(limits: Limits): HeadLimits {
  return headLimits(limits, limits.maxResponseHeadBytes, responseLimits);
}

/** The same object for each head, as long as the limits stay the same. */
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

/** How long a connection stays open after our FIN. */
export const LINGER_MS = 1_000;
/** What a client may send ahead of the response that is due. More closes the connection after that response. */
export const MAX_AHEAD_BYTES = 16_384;
/** Interim responses of one exchange. */
export const MAX_INTERIM_RESPONSES = 20;
export const MAX_INTERIM_BYTES = 65_536;
/** How many addresses of one lookup are used; all of them are checked before any is dialled. */
export const MAX_ADDRESSES = 16;
/** How often the gate decides on one request, because the policy changes while the upstream is dialled. */
export const MAX_DECISIONS = 10;
/** Flow-control window of one HTTP/2 stream of an upstream: these bytes wait in our memory until they are forwarded. */
export const MAX_STREAM_WINDOW_BYTES = 262_144;
/** Flow-control window of all streams of one session: 16 of them at full speed. */
export const SESSION_WINDOW_BYTES: number = 16 * MAX_STREAM_WINDOW_BYTES;
