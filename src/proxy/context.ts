// What the connections of one sandbox share. Values and closures only: whoever composes the sidecar decides what
// stands behind them.
import type { Socket } from 'node:net';
import type { Log } from '../base/log.ts';
import type { CallbackResolver } from '../callback/resolver.ts';
import type { Authority } from '../policy/authority/authority.ts';
import type { Policy } from '../policy/policy.ts';
import type { LeafCache } from '../tls/leaf-cache.ts';
import type { EgressRules } from './upstream/address-guard.ts';
import type { AlpnHints } from './upstream/alpn.ts';
import type { Dialler } from './upstream/dial.ts';
import type { Limits, Timeouts } from './limits.ts';
import type { Recorder } from './record.ts';
import type { ConnectionPool } from './upstream/connection-pool.ts';
import type { UpstreamSessions } from './upstream/h2-sessions.ts';
import type { SpeculativeDialFailure } from './upstream/speculative-dial-failure.ts';

/** A client connection as the way down sees it. */
export type OpenConnection = {
  readonly socket: Socket;
  /** The host's connection, once the two are one stream: it may have more to send than the client stayed for. */
  readonly splicedTo?: Socket | undefined;
  /** Ends it when what runs on it is over, and begins nothing more. */
  drain(): void;
  /** Resolves when the socket is closed and the last record of it is out. */
  readonly gone: Promise<void>;
};

export type ProxyContext = {
  readonly sandbox: string;
  /** The policy in force; a request asks once and keeps the answer (one revision from start to end). */
  policy(): Policy;
  readonly callbacks: CallbackResolver;
  readonly dialler: Dialler;
  readonly upstream: ConnectionPool;
  readonly sessions: UpstreamSessions;
  readonly hints: AlpnHints;
  readonly leaves: LeafCache;
  readonly egress: EgressRules;
  /** Secrets are masked in every body, whatever the rules say. */
  readonly scrubsBodies: boolean;
  readonly limits: Limits;
  readonly timeouts: Timeouts;
  readonly recorder: Recorder;
  readonly log: Log;
  /** Open client connections; each leaves by itself when it is gone. */
  readonly connections: Set<OpenConnection>;
  /** The sockets of clients that have said that they speak for this sandbox. */
  readonly clients: Set<Socket>;
  /** The process is asked to stop, or the sandbox is being removed. */
  isDraining(): boolean;
  isReady(): boolean;
};

export type Scheme = 'http' | 'https';

/** What a client connection belongs to: fixed for its whole life, except the sandbox, which a token selects later. */
export type ConnectionScope = {
  readonly context: ProxyContext;
  readonly scheme: Scheme;
  /** The CONNECT authority of an intercepted tunnel; undefined on the proxy port. */
  readonly tunnel: Authority | undefined;
  readonly clientAddress: string | undefined;
  readonly dialFailure?: SpeculativeDialFailure | undefined;
};

/** A client connection of either HTTP version, as the gate sees it. */
export type ScopedClient = { readonly id: number; readonly scope: ConnectionScope };

let lastId = 0;

/** Distinguishes client connections of both HTTP versions in the pools; never 0. */
export function nextConnectionId(): number {
  lastId += 1;
  return lastId;
}
