// The admin API on its own listener: every bound on time, bytes and numbers is set here. It must not know what a route
// does.
import { createServer } from 'node:http';
import type { Log } from '../base/log.ts';
import { alreadySent, createRequestListener } from '../base/request-listener.ts';
import type { Router as Finder } from '../base/router.ts';
import type { Secret } from '../base/secret.ts';
import { createAccessGuard } from './access-guard.ts';
import { createApp } from './app.ts';
import { type Case, Desk, type DeskLimits, type Router } from './desk.ts';
import type { AdminScope } from './exchange.ts';
import { type AdminListen, listenAt } from './listening.ts';
import { RateLimit } from './rate-limit.ts';
import type { AdminRecord } from './record.ts';
import { routes } from './routes.ts';
import { UnauthenticatedRecords } from './stranger-records.ts';
import type { AdminTarget } from './target.ts';
import { WriteGate } from './write-gate.ts';

export type AdminLimits = DeskLimits & {
  readonly headBytes: number;
  readonly keepAliveMs: number;
  readonly writesAtOnce: number;
  readonly writesPerSecond: number;
  /** How long one write may keep others waiting. */
  readonly stallMs: number;
  readonly wrongTokensPerMinute: number;
  /** Records of callers without the token; more are counted. */
  readonly unauthenticatedRecordsPerSecond: number;
};

export type AdminServer = {
  /** `http://127.0.0.1:3129` or `unix:/path`. */
  readonly url: string;
  readonly address: string;
  readonly port: number;
  /** Stops accepting; lets running requests end, at most for `drainMs`. */
  close(drainMs: number): Promise<void>;
  /** After `close`: every request that was taken has left its record. It waits for the target without a limit. */
  settled(): Promise<void>;
};

export type AdminServerOptions = {
  readonly target: AdminTarget;
  readonly listen: AdminListen;
  readonly token: Secret;
  /** Names that Host may hold besides those of loopback. */
  readonly hosts: readonly string[];
  record(entry: AdminRecord): void;
  isRecordBlocked(): boolean;
  readonly log: Log;
  readonly limits?: Partial<AdminLimits>;
};

const DEFAULTS: AdminLimits = {
  connections: 64,
  outsiders: 16,
  headBytes: 16 * 1024,
  bodyBytes: 1024 * 1024,
  requestMs: 10_000,
  keepAliveMs: 5000,
  writesAtOnce: 8,
  writesPerSecond: 100,
  stallMs: 30_000,
  wrongTokensPerMinute: 5,
  unauthenticatedRecordsPerSecond: 10,
};

/** Throws an Error that says which setting to change when it cannot listen. */
export async function createAdminServer(options: AdminServerOptions): Promise<AdminServer> {
  const limits = { ...DEFAULTS, ...options.limits };
  const app = createApp<Case>(routes, async (one, match) => {
    await desk.response(one, match);
    return alreadySent;
  });
  const desk: Desk = new Desk(
    toScope(options, limits),
    limits,
    createRouter(app, (one, error) => desk.fail(one, error)),
  );
  const server = createServer(
    {
      maxHeaderSize: limits.headBytes,
      headersTimeout: limits.requestMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: Math.min(1000, Math.ceil(limits.requestMs / 10)),
      // Answered by ourselves, with a sentence and the fields that every answer has.
      requireHostHeader: false,
    },
    (incoming, outgoing) => desk.receive(incoming, outgoing),
  );
  desk.attach(server);
  const at = await listenAt(server, options.listen);
  // As when no descriptor is left for a connection: those that stand go on.
  server.on('error', (error: NodeJS.ErrnoException) =>
    options.log.warn({ error: error.code }, 'admin listener'),
  );
  return { ...at, close: (drainMs) => desk.close(server, drainMs), settled: () => desk.settled() };
}

function toScope(options: AdminServerOptions, limits: AdminLimits): AdminScope {
  const { target, token, hosts, log } = options;
  const record = (entry: AdminRecord): void => options.record(entry);
  const isRecordBlocked = (): boolean => options.isRecordBlocked();
  const now = (): number => performance.now();
  const wrongTokens = new RateLimit(limits.wrongTokensPerMinute, 60_000, now);
  const writes = new RateLimit(limits.writesPerSecond, 1000, now);
  const unauthenticatedRecords = new RateLimit(limits.unauthenticatedRecordsPerSecond, 1000, now);
  return {
    target,
    guard: createAccessGuard({ token, hosts, wrongTokens }),
    writes: new WriteGate(limits.writesAtOnce, writes, limits.stallMs),
    outsiders: new UnauthenticatedRecords({ rate: unauthenticatedRecords, log, record, isRecordBlocked }),
    log,
    record,
    isRecordBlocked,
  };
}

function createRouter(app: Finder<Case>, fail: (one: Case, error: unknown) => void): Router {
  const cases = new WeakMap<object, Case>();
  const listener = createRequestListener(async (request, incoming) => {
    const one = cases.get(incoming);
    if (one === undefined) throw new Error('a request that nobody received');
    try {
      return await app(request, one);
    } catch (error) {
      fail(one, error);
      return alreadySent;
    }
  });
  return async (one, path) => {
    const { incoming, outgoing } = one;
    cases.set(incoming, one);
    // The head is judged by then: the adaptor, which makes a URL of these two, gets none that could mislead it.
    incoming.url = path;
    incoming.headers.host = 'localhost';
    await listener(incoming, outgoing);
  };
}
