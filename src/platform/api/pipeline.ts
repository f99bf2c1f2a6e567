// One request from its head to its response, in the order of trust: whether there is such a route, who calls, whether the
// caller has the permission, what is asked; then the phases of the route. Independent of sockets.
import { type HttpResponse, jsonResponse } from '../../base/http/http-response.ts';
import { allowedMethods, createRouteTable } from '../../base/http/route-table.ts';
import { describeBug, errorCode, type Log } from '../../base/log.ts';
import type { Authenticator } from '../identity/authentication.ts';
import { noWorkspace } from '../identity/authorization.ts';
import { type Store, isOrphan } from '../store/database.ts';
import type { Grant } from './access.ts';
import { type Outcome, chooseResponse, isTextResponse } from './responses.ts';
import type { Api, ApiRequest, RequestContext } from './api-request.ts';
import { recordFailure } from './audit-events.ts';
import { platformError, toErrorResponse } from './errors.ts';
import { type PhaseScope, runPhases, toEntry } from './phases.ts';
import { readParts } from './request-parts.ts';
import type { Route } from './route.ts';
import { createWriteTurns, defaultTurns } from './write-turns.ts';

export type ApiScope = {
  readonly store: Store;
  readonly authenticator: Authenticator;
  readonly log: Log;
  readonly maxBodyBytes: number;
};

type Scope = ApiScope & PhaseScope;

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
  let known: Grant | undefined;
  let pending: string | undefined;
  try {
    const granted = await enter(scope, route, request, (partly) => (known = partly));
    known = granted;
    const parts = await readParts(route, { ...request, url }, match.params, scope.maxBodyBytes);
    const onEvent = (id: string): void => void (pending = id);
    return toResponse(route, await runPhases(scope, context, { route, granted, parts, onEvent }));
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

function enter(
  { store, authenticator }: Scope,
  { access }: Route,
  request: ApiRequest,
  onKnown: (partly: Grant) => void,
) {
  const onCaller = (partly: Grant): void => {
    request.note({ keyId: partly.caller?.keyId });
    onKnown(partly);
  };
  return access.enter(toEntry(request, { db: store.db, authenticator, onCaller }));
}

function toResponse({ responses }: Route, outcome: Outcome): HttpResponse {
  const { status, response } = chooseResponse(responses, outcome);
  const { body, fields = {} } = outcome;
  if (response === null) return { status, fields };
  if (!isTextResponse(response)) return jsonResponse(status, body, fields);
  return { status, body: String(body), fields: { 'Content-Type': response.textType, ...fields } };
}

function internalError({ log }: ApiScope, { requestId }: ApiRequest, error: unknown): HttpResponse {
  log.error({ ...describeBug(error), request: requestId }, 'request failed');
  return platformError('internal_error');
}

function rejectRoute(others: readonly Route[]): HttpResponse {
  if (others.length === 0) return platformError('no_route');
  return platformError('method', undefined, { Allow: allowedMethods(others) });
}
