// What serves the connections of the admin API. Loaded with the first of them: most sidecars never have one.
import type { Duplex } from 'node:stream';
import { type Exchange, HttpServer } from '../base/http/http-server.ts';
import type { HttpResponse } from '../base/http/http-response.ts';
import { RateLimit } from '../base/rate-limit.ts';
import { createRouteTable } from '../base/http/route-table.ts';
import type { Log } from '../base/log.ts';
import type { Secret } from '../base/secret.ts';
import { createAccessGuard } from './access-guard.ts';
import { adminError } from './admin-errors.ts';
import { type AdminRecord, UnauthenticatedRecords } from './admin-records.ts';
import type { PageScope } from './page/page-request.ts';
import type { SessionClock } from './page/page-sessions.ts';
import { Readers } from './records/record-stream.ts';
import { type AdminExchange, type AdminScope, handleRequest } from './request-pipeline.ts';
import { routes } from './routes.ts';
import type { AdminTarget } from './target.ts';
import { WriteGate, type WriteLimits } from './write-gate.ts';

export type AdminApiOptions = {
  readonly token: Secret;
  /** Names that Host may hold besides those of loopback. */
  readonly hosts: readonly string[];
  record(entry: AdminRecord): void;
  isRecordBlocked(): boolean;
  readonly log: Log;
  /** Of the sessions of the page. */
  readonly clock?: SessionClock;
};

export type AdminApiLimits = WriteLimits & {
  readonly headBytes: number;
  /** For a whole request, and again for its response to be read. */
  readonly requestMs: number;
  readonly keepAliveMs: number;
  readonly wrongTokensPerMinute: number;
  /** Who may follow the records at once. */
  readonly readers: number;
  /** Records of callers without the token; more are counted. */
  readonly unauthenticatedRecordsPerSecond: number;
};

export type AdminApi = ReturnType<typeof createAdminApi>;

/** `authenticate` is called with each connection that has shown the token. */
export function createAdminApi(
  target: AdminTarget,
  options: AdminApiOptions,
  limits: AdminApiLimits,
  authenticate: (socket: Duplex) => void,
) {
  const scope = toScope(target, options, limits);
  const pages = new Pages(scope, options.clock);
  const server = new HttpServer({
    limits: { ...limits, headMs: limits.requestMs },
    log: options.log,
    handle: (exchange) => handle({ scope, pages }, exchange, authenticate),
    reject: (kind) => adminError(kind),
  });
  return {
    serve: server.serveAccepted(),
    isBusy: (socket: Duplex) => server.isBusy(socket),
    /** Lets running requests end, at most for `drainMs`. */
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
  { scope, pages }: { readonly scope: AdminScope; readonly pages: Pages },
  exchange: Exchange,
  authenticate: (socket: Duplex) => void,
): Promise<HttpResponse> {
  const { head, body, socket } = exchange;
  const asked: AdminExchange = {
    ...exchange,
    client: socket.remoteAddress,
    onAuthenticated: () => authenticate(socket),
  };
  const response = isOfPage(head) ? await pages.handle(asked) : await handleRequest(scope, asked);
  return { ...response, isLast: !head.isOriginForm || !body.isComplete };
}

/** What lists the routes for programs leads people to the page. */
function isOfPage({ target, values }: Exchange['head']): boolean {
  return /^\/ui(?:[/?]|$)/.test(target) || (target === '/' && values('accept').join().includes('text/html'));
}

/** The page, which is loaded with the first request for it: most operators never ask. */
class Pages {
  readonly #scope: AdminScope;
  readonly #clock: SessionClock;
  #loading: Promise<(exchange: AdminExchange) => Promise<HttpResponse>> | undefined;

  constructor(scope: AdminScope, clock: SessionClock = PROCESS_CLOCK) {
    this.#scope = scope;
    this.#clock = clock;
  }

  async handle(exchange: AdminExchange): Promise<HttpResponse> {
    this.#loading ??= this.#load().catch((error: unknown) => {
      // The next request tries again: there may have been no free file descriptor.
      this.#loading = undefined;
      throw error;
    });
    return (await this.#loading)(exchange);
  }

  async #load(): Promise<(exchange: AdminExchange) => Promise<HttpResponse>> {
    const [{ handlePage }, { PageSessions, PageSession }, { RecordFeed }] = await Promise.all([
      import('./page/page-pipeline.ts'),
      import('./page/page-sessions.ts'),
      import('./page/record-feed.ts'),
    ]);
    const sessions = new PageSessions(this.#clock);
    const { records } = this.#scope.target;
    const isWatched = (): boolean => sessions.size > 0;
    const feed = new RecordFeed({ records, isWatched, now: () => performance.now() });
    const signInToken = new PageSession({ monotonic: 0, wall: 0 });
    const scope: PageScope = { ...this.#scope, sessions, signInToken, feed };
    return (exchange) => handlePage(scope, exchange);
  }
}

const PROCESS_CLOCK: SessionClock = { monotonic: () => performance.now(), wall: () => Date.now() };

function toScope(target: AdminTarget, options: AdminApiOptions, limits: AdminApiLimits): AdminScope {
  const { token, hosts, log } = options;
  const record = (entry: AdminRecord): void => options.record(entry);
  const isRecordBlocked = (): boolean => options.isRecordBlocked();
  const now = (): number => performance.now();
  const rateOf = (count: number, windowMs: number): RateLimit => new RateLimit(count, windowMs, now);
  const rate = rateOf(limits.unauthenticatedRecordsPerSecond, 1000);
  return {
    target,
    guard: createAccessGuard({ token, hosts, wrongTokens: rateOf(limits.wrongTokensPerMinute, 60_000) }),
    findRoute: createRouteTable(routes),
    writes: new WriteGate(limits, now),
    readers: new Readers(limits.readers),
    bodyBytes: limits.bodyBytes,
    unauthenticated: new UnauthenticatedRecords({ rate, log, record, isRecordBlocked }),
    log,
    record,
    isRecordBlocked,
  };
}
