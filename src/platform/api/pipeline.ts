// One request from its head to its response, in the order of trust: whether there is such a route, who calls, whether the
// caller has the permission, what is asked; then the phases of the route. Independent of sockets.
import { type HttpResponse, jsonResponse } from '../../base/http/http-response.ts';
import { allowedMethods, createRouteTable } from '../../base/http/route-table.ts';
import { describeBug, errorCode } from '../../base/log.ts';
import type { Store } from '../store/database.ts';
import type { Grant } from './access.ts';
import {
  type Admission,
  type AdmissionParts,
  createAdmission,
  enter,
  type Entrance,
  partyOf,
  partyOfCaller,
  toEntry,
} from './shares/admission.ts';
import { type Outcome, chooseResponse, heldBytesOf, isStreamResponse, isTextResponse } from './responses.ts';
import { type Api, type ApiRequest, openStreamOf, type RequestContext } from './api-request.ts';
import { recordFailure } from './audit-events.ts';
import { corsFields, preflight } from './contract/cors.ts';
import { type ErrorFormat, problemErrors } from './contract/error-formats.ts';
import { toRows } from './contract/mount.ts';
import { type Fallback, serveFallback } from './contract/fallback.ts';
import { apiError, type StreamError, toApiError, toStreamError } from './errors.ts';
import { isLarge, jsonInSteps } from './json-text.ts';
import { toMissingReference } from './missing-references.ts';
import { type Admitted, confirmsFirst, type PhaseScope, runPhases } from './phases.ts';
import { readParts, type ReadParts } from './request-parts.ts';
import { createRouteLimits, type LimitRoute } from './route-limits.ts';
import type { Call, Route } from './route.ts';
import { streamBody } from './stream/streamed-body.ts';
import type { ServerLimits, TenantLimits } from './limits.ts';
import { systemClock } from './shares/clock.ts';
import { createFailureEvents, type FailureEvents, type FailureRates } from './shares/failure-events.ts';
import type { Leave, Party } from './shares/fair-queue.ts';

export type ApiScope = AdmissionParts & {
  readonly limits: Pick<ServerLimits, 'bodyBytes'> & TenantLimits;
  /** Made for this API when absent. */
  readonly admission?: Admission;
  /** Those of `failureRates` when absent. */
  readonly failureRates?: FailureRates;
  /** Takes the requests for paths that no route has, whatever their method. */
  readonly fallback?: Fallback | undefined;
  /** The format of errors where there is no route; `problemErrors` when absent. */
  readonly errors?: ErrorFormat | undefined;
};

type Scope = ApiScope &
  Admission & {
    readonly limit: LimitRoute;
    readonly failures: FailureEvents;
  };

export type RunningApi = Api & {
  /** Stores the audit events that no request waits for. */
  settle(): Promise<void>;
};

export function createApi(routes: readonly Route[], parts: ApiScope): RunningApi {
  const { admission = createAdmission(parts) } = parts;
  const failures = createFailureEvents(
    { store: admission.shares.own, log: parts.log },
    systemClock,
    parts.failureRates,
  );
  const scope: Scope = {
    ...{ ...parts, ...admission, failures },
    limit: createRouteLimits(),
  };
  const findRoute = createRouteTable(toRows(routes));
  const respondTo: Api = async (request) => {
    const { target, method } = request.head;
    const pathEnd = target.includes('?') ? target.indexOf('?') : target.length;
    const [path, search] = [target.slice(0, pathEnd), target.slice(pathEnd)];
    const { route: row, routes: rows, params } = findRoute(method, path);
    const { fallback } = parts;
    if (rows.length === 0 && fallback !== undefined)
      return serveFallback(fallback, request, {
        enter: () => enterRoute(scope, fallback, request),
        toResponse: (error) => toFailure(scope, fallback, request, error).response,
      });
    const route = row?.route;
    if (route === undefined) {
      const others = rows.map((one) => one.route);
      return rejectRoute(others, request, parts.errors);
    }
    try {
      const response = await respond(scope, route, { request, search, params });
      if (route.cors === undefined) return response;
      return { ...response, fields: { ...response.fields, ...corsFields(route.cors, request.head) } };
    } catch (error) {
      return toFailure(scope, route, request, error).response;
    }
  };
  return Object.assign(respondTo, { settle: () => failures.settle() });
}

async function respond(scope: Scope, route: Route, context: RequestContext): Promise<HttpResponse> {
  const { request } = context;
  request.note({ route: route.path });
  let known: Grant | undefined;
  let pending: string | undefined;
  let isCommitted = false;
  try {
    const onCaller = (partly: Grant): void => void (known = partly);
    const isConfirmed = confirmsFirst(route);
    const granted = await enterRoute(scope, route, request, { onCaller, isConfirmed });
    known = granted;
    const party = partyOf(route.access, granted);
    await admitStream(scope, route, request, party);
    const onEvent = (id: string): void => void (pending = id);
    const onCommitted = (): void => void (isCommitted = true);
    const findParty = (): Party | undefined => party ?? partyOfCaller(known);
    return await serve(scope, context, { route, granted, party, findParty, onEvent, onCommitted });
  } catch (thrown) {
    const error = toMissingReference(thrown);
    const { response, status, code } = toFailure(scope, route, request, error);
    // What is unavailable, for the operator alone.
    if (status === 503) request.note({ cause: errorCode(error) });
    // The event of its success is stored.
    if (!isCommitted)
      await recordFailure(scope.failures, { route, context, granted: known, status, code, pending });
    return response;
  }
}

type Entered = Omit<Admitted, 'parts' | 'release'> & {
  readonly party: Party | undefined;
  /** The same, and whom the phase before the transaction has found. */
  findParty(): Party | undefined;
};

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Reads the parts of the request and runs its phases, within the shares of the caller. */
async function serve(scope: Scope, context: RequestContext, entered: Entered): Promise<HttpResponse> {
  const { route, granted, party, findParty } = entered;
  const { request, search, params } = context;
  const { authenticator, log, shares, limits } = scope;
  const leave = await shareBytes(scope, route, request, party);
  try {
    const parts: Mutable<ReadParts> = await readParts(route, request, { params, search }, limits.bodyBytes);
    const release = (): void => {
      parts.body = undefined;
      leave?.();
    };
    const phases: PhaseScope = {
      ...{ authenticator, log },
      reads: () => storeOf(scope, 'reads', findParty()),
      writes: () => storeOf(scope, 'writes', findParty()),
      prepare: (work) => (party ? shares.prepare(party, work) : work()),
      respond: (work) => (party ? shares.respond(party, work) : work()),
    };
    const run = (): Promise<Outcome> => runPhases(phases, context, { ...entered, parts, release });
    const outcome = await scope.limit(route, route.access.callerOf(granted), () =>
      party ? shares.responses.during(party.organization, run) : run(),
    );
    // The response does not wait for it.
    if (route.revokes === true && granted.organizationId !== undefined)
      void scope.streams.sweep(granted.organizationId);
    return await toResponse(scope, request, { route, outcome, granted, parts, phases, party });
  } finally {
    leave?.();
  }
}

function storeOf({ pools, shares }: Scope, purpose: 'reads' | 'writes', party: Party | undefined): Store {
  return party === undefined ? pools[purpose] : shares[purpose](party);
}

async function enterRoute(
  scope: Scope,
  { access }: Pick<Route, 'access'>,
  request: ApiRequest,
  { onCaller, isConfirmed = false }: Entrance = {},
): Promise<Grant> {
  const granted = await enter(scope, access, request, {
    isConfirmed,
    onCaller(partly) {
      request.note({ keyId: partly.caller?.keyId, organizationId: partly.organizationId });
      onCaller?.(partly);
    },
  });
  if (access.schemes.length > 0) request.connection.authenticated();
  const { organizationId } = granted;
  if (organizationId !== undefined) request.note({ organizationId });
  return granted;
}

/** The process holds a body until its request has ended or only waits, and of an upload what is on its way. */
async function shareBytes(
  { shares, limits }: Scope,
  { upload, bodyRules }: Route,
  { head }: ApiRequest,
  party: Party | undefined,
): Promise<Leave | undefined> {
  if (party === undefined || !head.hasBody) return undefined;
  const held =
    upload === undefined ? (bodyRules?.maxBytes ?? limits.bodyBytes) : (upload.heldBytes ?? UPLOAD_BYTES);
  // Of a coded body it says how much is sent, not how much it becomes.
  const said = head.field('content-encoding') === undefined ? head.field('content-length') : undefined;
  const length = Number(said ?? held);
  return shares.ingest(party, Math.min(length, held));
}

const UPLOAD_BYTES = 1024 * 1024;

/** Before anything is done for it: a client that is rejected can try again. */
async function admitStream(
  { shares }: Scope,
  { responses }: Route,
  { connection, closed }: ApiRequest,
  party: Party | undefined,
): Promise<void> {
  const heldBytes = heldBytesOf(responses);
  if (heldBytes === undefined) return;
  if (party !== undefined) await shares.stream(party, { heldBytes, closed });
  openStreamOf(connection);
}

type Committed = {
  readonly route: Route;
  readonly outcome: Outcome;
  readonly granted: Grant;
  readonly parts: Pick<Call, 'params' | 'query' | 'body'>;
  readonly phases: Pick<PhaseScope, 'reads'>;
  readonly party: Party | undefined;
};

async function toResponse(scope: Scope, request: ApiRequest, committed: Committed): Promise<HttpResponse> {
  const { route, outcome, granted, parts, phases, party } = committed;
  const { status, response } = chooseResponse(route.responses, outcome);
  const { body, fields = {}, source } = outcome;
  if (response === null) return { status, fields };
  if (isTextResponse(response))
    return { status, body: String(body), fields: { 'Content-Type': response.textType, ...fields } };
  if (!isStreamResponse(response)) {
    if (party === undefined || !isLarge(body)) return jsonResponse(status, body, fields);
    const text = await scope.shares.responses.build(party.organization, jsonInSteps(body));
    // What was changed stays changed: its caller must not do it again.
    if (text.length > COUNTED_BYTES && !('operation' in route.tracking))
      await scope.shares.unread(party, text.length, request.closed);
    return { status, body: `${text}\n`, fields: { 'Content-Type': 'application/json', ...fields } };
  }
  const onError = (error: unknown): StreamError => {
    if (toApiError(error) === undefined) reportBug(scope, request, error);
    return toStreamError(error);
  };
  const streamed = streamBody(response, request, {
    onError,
    open: (end) => openStream(scope, request, { route, granted, end }),
    produce: (streaming) => {
      if (route.stream === undefined)
        throw new Error(`${route.path} has a streamed response, and produces none`);
      return route.stream({ ...granted, ...parts, ...streaming, db: phases.reads().db }, source);
    },
  });
  return { status, body: streamed.body, fields: { ...streamed.fields, ...fields } };
}

/** Smaller responses are most, and their connections are limited. */
const COUNTED_BYTES = 64 * 1024;

type Opened = Pick<Committed, 'route' | 'granted'> & { end(reason: Error): void };

function openStream({ streams }: Scope, request: ApiRequest, { route, granted, end }: Opened): Disposable {
  return streams.add({
    ...{ access: route.access, granted, requestId: request.requestId, end },
    toEntry: (known) => toEntry(request, known),
  });
}

/** The error in the format of the route. A bug is logged. */
function toFailure(
  scope: ApiScope,
  { errors = problemErrors }: Pick<Route, 'errors'>,
  request: ApiRequest,
  error: unknown,
) {
  const known = toApiError(error);
  if (known === undefined) reportBug(scope, request, error);
  const failure = known ?? apiError('internal_error');
  return { ...failure, response: errors.write(failure, request.requestId) };
}

function reportBug({ log }: ApiScope, { requestId }: ApiRequest, error: unknown): void {
  log.error({ ...describeBug(error), request: requestId }, 'request failed');
}

function rejectRoute(
  others: readonly Route[],
  { head, requestId }: ApiRequest,
  errors: ErrorFormat = problemErrors,
): HttpResponse {
  if (others.length === 0) return errors.write(apiError('no_route'), requestId);
  const fields = { Allow: allowedMethods(others) };
  return preflight(others, head) ?? errors.write({ ...apiError('method'), fields }, requestId);
}
