// What the connections of one sandbox share, and the types that tie client connections to it. Values and interfaces only:
// src/sidecar creates them.
import type { Socket } from 'node:net';
import type { Log } from '../base/log.ts';
import type { CallbackResolver } from '../callback/resolver.ts';
import type { Authority } from '../policy/authority/authority.ts';
import type { Policy } from '../policy/policy.ts';
import type { LeafCache } from '../tls/leaf-cache.ts';
import type { ProxyCounters } from './counters.ts';
import type { EgressRules } from './upstream/address-guard.ts';
import type { AlpnHints } from './upstream/alpn.ts';
import type { Dialler } from './upstream/dial.ts';
import type { Limits, Timeouts } from './limits.ts';
import type { ReservedHost } from './local/reserved-host.ts';
import type { Recorder } from './record.ts';
import type { ConnectionPool } from './upstream/connection-pool.ts';
import type { UpstreamSessions } from './upstream/h2-sessions.ts';
import type { SpeculativeDialFailure } from './upstream/speculative-dial-failure.ts';

/** What graceful shutdown needs of a client connection. */
export type OpenConnection = {
  readonly socket: Socket;
  /** The upstream's socket once the two are spliced. It may still have bytes to send when the client is gone. */
  readonly splicedTo?: Socket | undefined;
  /** Closes it when its running exchanges have ended, and starts no more. */
  drain(): void;
  /** Resolves when the socket is closed and its last record is emitted. */
  readonly closed: Promise<void>;
};

export type ProxyContext = {
  readonly sandbox: string;
  /** The policy in force. A request reads it once and keeps it (one revision from start to end). */
  policy(): Policy;
  readonly callbacks: CallbackResolver;
  readonly dialler: Dialler;
  readonly upstream: ConnectionPool;
  readonly sessions: UpstreamSessions;
  readonly hints: AlpnHints;
  readonly leaves: LeafCache;
  readonly egress: EgressRules;
  readonly reserved: ReservedHost;
  /** Secrets are masked in every response body, whatever the policy says. */
  readonly scrubsBodies: boolean;
  readonly limits: Limits;
  readonly timeouts: Timeouts;
  readonly recorder: Recorder;
  /** Of the whole process. */
  readonly counters: ProxyCounters;
  readonly log: Log;
  /** Open client connections; each removes itself when it is closed. */
  readonly connections: Set<OpenConnection>;
  /** The sockets of clients that have authenticated for this sandbox. */
  readonly clients: Set<Socket>;
  /** The process is asked to stop, or the sandbox is being removed. */
  isDraining(): boolean;
  isReady(): boolean;
};

export type Scheme = 'http' | 'https';

/** What a client connection belongs to. Fixed for its lifetime, except the sandbox, which a token selects later. */
export type ConnectionScope = {
  readonly context: ProxyContext;
  readonly scheme: Scheme;
  /** The CONNECT authority of an intercepted tunnel; undefined on the proxy port. */
  readonly tunnel: Authority | undefined;
  readonly clientAddress: string | undefined;
  readonly dialFailure?: SpeculativeDialFailure | undefined;
};

/** A client connection of either version of HTTP, for the gate. */
export type ScopedClient = { readonly id: number; readonly scope: ConnectionScope };

let lastId = 0;

/** A new id of a client connection of either version of HTTP, for the pools; never 0. */
export function nextConnectionId(): number {
  lastId += 1;
  return lastId;
}
