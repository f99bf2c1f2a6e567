// One request from its arrival to its answer, in the order of trust: is there such a route, who asks, may he, what is
// asked; then the work and its audit event in one transaction. It must not know sockets, nor what a route does.
import { describeBug, errorCode, type Log } from '../../base/log.ts';
import { type Match, createRouter } from '../../base/router.ts';
import { noWorkspace } from '../identity/authorization.ts';
import { type Database, type Store, isOrphan } from '../store/database.ts';
import { type Entry, type Gatekeeper, type Granted, confirm, grant, grantedTo } from './access.ts';
import { recordFailure, withEvent } from './auditing.ts';
import { type Reply, respondWithError, bug, refusal } from './problem.ts';
import { readParts } from './request-parts.ts';
import type { Call, Outcome, Route } from './route.ts';
import { type Write, createWriteTurns, defaultTurns } from './write-turns.ts';

export type ApiScope = {
  readonly store: Store;
  readonly gatekeeper: Gatekeeper;
  readonly log: Log;
  readonly maxBodyBytes: number;
};

type Scope = ApiScope & { readonly write: Write };

/** What the server knows of a request besides its head and body. */
export type Arrival = {
  readonly requestId: string;
  /** The address of the client, as far as proxies in front may be believed. */
  readonly host: string | undefined;
  readonly port: number | undefined;
  /** Told what becomes known on the way, for the log and the metrics. */
  note(facts: {
    readonly route?: string;
    readonly keyId?: string;
    readonly cause?: string | undefined;
  }): void;
};

export type Api = (request: Request, arrival: Arrival) => Promise<Response>;

/** The answer never rejects. */
export function createApi(routes: readonly Route[], parts: ApiScope): Api {
  const scope: Scope = { ...parts, write: createWriteTurns(parts.store, defaultTurns) };
  // In this order a fixed segment comes before a parameter in its place: braces sort behind letters.
  const ordered = routes.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  const requests = new WeakMap<Arrival, Request>();
  const route = createRouter<Route, Arrival>(ordered, async (arrival, match) => {
    const request = requests.get(arrival);
    return toResponse(request === undefined ? bug : await response(scope, { request, arrival, match }));
  });
  return async (request, arrival) => {
    requests.set(arrival, request);
    try {
      return await route(request, arrival);
    } catch (error) {
      return toResponse(respondWithInternalError(scope, arrival, error));
    }
  };
}

/** A request and what is known of it. */
export type Case = {
  readonly request: Request;
  readonly arrival: Arrival;
  readonly match: Match<Route>;
};

async function response(scope: Scope, one: Case): Promise<Reply> {
  const { route } = one.match;
  if (route === undefined) return refuseRoute(one.match.routes);
  one.arrival.note({ route: route.path });
  let known: Granted | undefined;
  let pending: string | undefined;
  try {
    known = await enter(scope, route, one, (partly) => (known = partly));
    const parts = await readParts(route, one.request, one.match.params, scope.maxBodyBytes);
    const call = { ...known, ...parts, db: scope.store.db };
    const { body, fields } = await run(scope, one, { route, call, onEvent: (id) => (pending = id) });
    return {
      status: route.success.status,
      ...(body === undefined ? {} : { body }),
      ...(fields === undefined ? {} : { fields }),
    };
  } catch (thrown) {
    // Its workspace was deleted since it was let in.
    const error = isOrphan(thrown) ? noWorkspace() : thrown;
    const refused = respondWithError(error) ?? respondWithInternalError(scope, one.arrival, error);
    // What is away, for the operator alone.
    if (refused.status === 503) one.arrival.note({ cause: errorCode(error) });
    await recordFailure(scope, { route, one, known, status: refused.status, pending });
    return refused;
  }
}

async function enter(
  scope: ApiScope,
  route: Route,
  one: Case,
  onKnown: (partly: Granted) => void,
): Promise<Granted> {
  const { arrival } = one;
  return grant(route.access, toEntry(one, scope.store.db), scope.gatekeeper, (caller) => {
    arrival.note({ keyId: caller.keyId });
    onKnown(grantedTo(caller));
  });
}

function toEntry({ request: { headers }, arrival }: Case, db: Database): Entry {
  return { headers, peer: arrival.host ?? '', db };
}

async function run(
  scope: Scope,
  one: Case,
  { route, call, onEvent }: { readonly route: Route; readonly call: Call; onEvent(id: string): void },
): Promise<Outcome> {
  const { access, tracking } = route;
  const confirmIn = async (db: Database): Promise<Call> => ({
    ...call,
    ...(await confirm(access, call, toEntry(one, db), scope.gatekeeper)),
    db,
  });
  if (!('operation' in tracking))
    return route.handle(route.method === 'GET' ? call : await confirmIn(scope.store.db));
  const { operation } = tracking;
  return scope.write(call.organizationId, async (trx) => {
    const confirmed = await confirmIn(trx);
    const outcome = await route.handle(confirmed);
    onEvent(await withEvent(trx, { route, one, call: confirmed, operation, outcome }));
    return outcome;
  });
}

function respondWithInternalError({ log }: ApiScope, { requestId }: Arrival, error: unknown): Reply {
  log.error({ ...describeBug(error), request: requestId }, 'request failed');
  return bug;
}

function refuseRoute(others: readonly Route[]): Reply {
  if (others.length === 0)
    return refusal(404, 'There is no such path: /openapi.json lists those that there are');
  const allowed = others.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  const fields = { Allow: [...new Set(allowed)].join(', ') };
  return { ...refusal(405, 'This path does not know this method: Allow lists those that it knows'), fields };
}

export function toResponse({ status, body, fields = {} }: Reply): Response {
  if (body === undefined) return new Response(null, { status, headers: fields });
  if (typeof body === 'string') return new Response(body, { status, headers: fields });
  const headers = { 'Content-Type': 'application/json', ...fields };
  return new Response(JSON.stringify(body), { status, headers });
}
