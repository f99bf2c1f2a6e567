// The admin API on its own listener: every limit on time, bytes and numbers is set here.
import { type Exchange, HttpServer } from '../base/http/http-server.ts';
import type { HttpResponse } from '../base/http/http-response.ts';
import { RateLimit } from '../base/http/rate-limit.ts';
import { createRouteTable } from '../base/http/route-table.ts';
import type { Log } from '../base/log.ts';
import type { Secret } from '../base/secret.ts';
import { createAccessGuard } from './access-guard.ts';
import { adminError } from './admin-errors.ts';
import { type AdminRecord, UnauthenticatedRecords } from './admin-records.ts';
import { ConnectionTable } from './connection-table.ts';
import { type AdminListen, listenAt } from './listening.ts';
import { type AdminScope, handleRequest } from './request-pipeline.ts';
import { routes } from './routes.ts';
import type { AdminTarget } from './target.ts';
import { WriteGate } from './write-gate.ts';

export type AdminServer = Awaited<ReturnType<typeof createAdminServer>>;

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

type AdminLimits = Readonly<typeof DEFAULTS>;

const DEFAULTS = {
  connections: 64,
  /** Of these, connections that have not shown the token. */
  unauthenticated: 16,
  headBytes: 16 * 1024,
  bodyBytes: 1024 * 1024,
  /** For a whole request, and again for its response to be read. */
  requestMs: 10_000,
  keepAliveMs: 5000,
  writesAtOnce: 8,
  writesPerSecond: 100,
  /** How long one write may delay others. */
  stallMs: 30_000,
  wrongTokensPerMinute: 5,
  /** Records of callers without the token; more are counted. */
  unauthenticatedRecordsPerSecond: 10,
};

/** Throws an Error that says which setting to change when it cannot listen. */
export async function createAdminServer(options: AdminServerOptions) {
  const limits = { ...DEFAULTS, ...options.limits };
  const scope = toScope(options, limits);
  const server: HttpServer = new HttpServer({
    limits: { ...limits, headMs: limits.requestMs },
    log: options.log,
    accept: (socket) => connections.add(socket),
    handle: (exchange) => handle(scope, connections, exchange),
    reject: (kind) => adminError(kind),
  });
  const connections = new ConnectionTable(limits, (socket) => server.isBusy(socket));
  const at = await listenAt(server.listener, options.listen);
  return {
    ...at,
    /** Stops accepting; lets running requests end, at most for `drainMs`. */
    async close(drainMs: number): Promise<void> {
      await server.close(drainMs, 'end');
      scope.unauthenticated.settle();
    },
    /** After `close`: every request that was accepted has left its record. It waits for the target without a limit. */
    async settled(): Promise<void> {
      await server.settled();
      scope.unauthenticated.settle();
    },
  };
}

async function handle(
  scope: AdminScope,
  connections: ConnectionTable,
  exchange: Exchange,
): Promise<HttpResponse> {
  const { head, body, socket } = exchange;
  const response = await handleRequest(scope, {
    ...exchange,
    client: socket.remoteAddress,
    onAuthenticated: () => connections.authenticate(socket),
  });
  return { ...response, isLast: !head.isOriginForm || !body.isComplete };
}

function toScope(options: AdminServerOptions, limits: AdminLimits): AdminScope {
  const { target, token, hosts, log } = options;
  const record = (entry: AdminRecord): void => options.record(entry);
  const isRecordBlocked = (): boolean => options.isRecordBlocked();
  const rateOf = (count: number, windowMs: number): RateLimit =>
    new RateLimit(count, windowMs, () => performance.now());
  const rate = rateOf(limits.unauthenticatedRecordsPerSecond, 1000);
  return {
    target,
    guard: createAccessGuard({ token, hosts, wrongTokens: rateOf(limits.wrongTokensPerMinute, 60_000) }),
    findRoute: createRouteTable(routes),
    writes: new WriteGate(limits.writesAtOnce, rateOf(limits.writesPerSecond, 1000), limits.stallMs),
    bodyBytes: limits.bodyBytes,
    unauthenticated: new UnauthenticatedRecords({ rate, log, record, isRecordBlocked }),
    log,
    record,
    isRecordBlocked,
  };
}
