// One request from its head to its response, in the order of trust: whether there is such a route, who calls, whether the
// caller has the permission, what is asked; then the work and its audit event in one transaction. Independent of sockets.
import { type HttpResponse, jsonResponse } from '../../base/http/http-response.ts';
import { allowedMethods, createRouteTable } from '../../base/http/route-table.ts';
import { describeBug, errorCode, type Log } from '../../base/log.ts';
import { noWorkspace } from '../identity/authorization.ts';
import { type Database, type Store, isOrphan } from '../store/database.ts';
import { type Entry, type Gatekeeper, type Granted, confirm, grant, grantedTo } from './access.ts';
import type { Api, ApiRequest, RequestContext } from './api-request.ts';
import { appendSuccess, recordFailure } from './audit-events.ts';
import { platformError, toErrorResponse } from './errors.ts';
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

export function createApi(routes: readonly Route[], parts: ApiScope): Api {
  const scope: Scope = { ...parts, write: createWriteTurns(parts.store, defaultTurns) };
  const findRoute = createRouteTable(routes);
  return async (request) => {
    const { target, method } = request.head;
    const url = new URL(`http://localhost${target}`);
    const match = findRoute(method, url.pathname);
    const { route, routes: others } = match;
    if (route === undefined) return rejectRoute(others);
    try {
      return await respond(scope, route, { request, url, match });
    } catch (error) {
      return internalError(scope, request, error);
    }
  };
}

async function respond(scope: Scope, route: Route, context: RequestContext): Promise<HttpResponse> {
  const { request, url, match } = context;
  request.note({ route: route.path });
  let known: Granted | undefined;
  let pending: string | undefined;
  try {
    known = await enter(scope, route, request, (partly) => (known = partly));
    const parts = await readParts(route, { ...request, url }, match.params, scope.maxBodyBytes);
    const call = { ...known, ...parts, db: scope.store.db };
    const outcome = await run(scope, context, { route, call, onEvent: (id) => (pending = id) });
    const { body, fields = {} } = outcome;
    const { status } = route.success;
    return typeof body === 'string' ? { status, body, fields } : jsonResponse(status, body, fields);
  } catch (thrown) {
    // The workspace was deleted since access to it was granted.
    const error = isOrphan(thrown) ? noWorkspace() : thrown;
    const response = toErrorResponse(error) ?? internalError(scope, request, error);
    // What is unavailable, for the operator alone.
    if (response.status === 503) request.note({ cause: errorCode(error) });
    await recordFailure(scope, { route, context, granted: known, status: response.status, pending });
    return response;
  }
}

function enter(scope: ApiScope, route: Route, request: ApiRequest, onKnown: (partly: Granted) => void) {
  return grant(route.access, toEntry(request, scope.store.db), scope.gatekeeper, (caller) => {
    request.note({ keyId: caller.keyId });
    onKnown(grantedTo(caller));
  });
}

function toEntry({ head, client }: ApiRequest, db: Database): Entry {
  return { head, peer: client.host ?? '', db };
}

async function run(
  scope: Scope,
  context: RequestContext,
  { route, call, onEvent }: { readonly route: Route; readonly call: Call; onEvent(id: string): void },
): Promise<Outcome> {
  const { access, tracking } = route;
  const confirmIn = async (db: Database): Promise<Call> => ({
    ...call,
    ...(await confirm(access, call, toEntry(context.request, db), scope.gatekeeper)),
    db,
  });
  if (!('operation' in tracking))
    return (await route.handle(route.method === 'GET' ? call : await confirmIn(scope.store.db))) ?? {};
  return scope.write(call.organizationId, async (trx) => {
    const confirmed = await confirmIn(trx);
    const outcome = (await route.handle(confirmed)) ?? {};
    onEvent(await appendSuccess(trx, { route, context, granted: confirmed }, outcome));
    return outcome;
  });
}

function internalError({ log }: ApiScope, { requestId }: ApiRequest, error: unknown): HttpResponse {
  log.error({ ...describeBug(error), request: requestId }, 'request failed');
  return platformError('internal_error');
}

function rejectRoute(others: readonly Route[]): HttpResponse {
  if (others.length === 0) return platformError('no_route');
  return platformError('method', undefined, { Allow: allowedMethods(others) });
}
