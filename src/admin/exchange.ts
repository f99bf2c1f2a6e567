// One request from its head to its answer and its record, in the order of trust: who asks, whether there is such a thing,
// what is asked, and only then a body. It must not know sockets or the router.
import { describeBug, type Log } from '../base/log.ts';
import { isSandboxId } from '../base/sandbox-id.ts';
import { toLocKey } from '../base/schema.ts';
import { type AccessGuard, tokenRequired } from './access-guard.ts';
import { type AdminResponse, invalid, refused, retryAfter } from './answer.ts';
import { type AdminRecord, toAdminRecord } from './record.ts';
import { type DocumentReading, judgeContentType } from './request-body.ts';
import type { RequestHead } from './request-head.ts';
import { type AdminRequest, hasDocument, isWrite, type Route } from './route.ts';
import { noSuchSandbox } from './sandbox-routes.ts';
import type { UnauthenticatedRecords } from './stranger-records.ts';
import type { AdminTarget } from './target.ts';
import type { WriteGate } from './write-gate.ts';

export type AdminScope = {
  readonly target: AdminTarget;
  readonly guard: AccessGuard;
  readonly writes: WriteGate;
  readonly log: Log;
  readonly outsiders: UnauthenticatedRecords;
  record(entry: AdminRecord): void;
  isRecordBlocked(): boolean;
};

/** A request as it came, its body not yet read. */
export type Arrival = {
  readonly request: string;
  readonly head: RequestHead;
  readonly client: string | undefined;
  readonly startedMs: number;
  /** Never rejects. */
  readDocument(): Promise<DocumentReading>;
  /** Told as soon as it is known. */
  onTrusted(): void;
};

/** What the router found for a method and a path. */
export type RouteMatch = {
  readonly route: Route | undefined;
  /** The parameter of the path. */
  readonly id: string | undefined;
  /** Other methods that the path knows. */
  readonly allowed: readonly string[];
  /** The path may be used without a token. */
  readonly isOpen: boolean;
};

export const noRoute: RouteMatch = { route: undefined, id: undefined, allowed: [], isOpen: false };

/** Never rejects; leaves at most one record. */
export async function respondToArrival(
  scope: AdminScope,
  arrival: Arrival,
  match: RouteMatch,
): Promise<AdminResponse> {
  const { token, refusal } = scope.guard.judge(arrival.head);
  if (token === 'right') arrival.onTrusted();
  const response =
    refusal ?? (await respondToCaller(scope, arrival, match, token === 'right').catch(onBug(scope, arrival)));
  const isRead = arrival.head.method === 'GET' || arrival.head.method === 'HEAD';
  if (!isRead || token === 'wrong') {
    const { request, client, startedMs } = arrival;
    const start = {
      action: match.route?.action ?? 'unknown',
      sandbox: sandboxOf(match),
      client,
      request,
      startedMs,
    };
    const entry = toAdminRecord(start, response, performance.now());
    if (token === 'right') scope.record(entry);
    else scope.outsiders.add(entry);
  }
  return response;
}

async function respondToCaller(
  scope: AdminScope,
  arrival: Arrival,
  match: RouteMatch,
  isTrusted: boolean,
): Promise<AdminResponse> {
  if (!isTrusted && !match.isOpen) return tokenRequired;
  const { head } = arrival;
  const { route } = match;
  if (route === undefined) return refuseRoute(match.allowed);
  const sandbox = sandboxOf(match);
  if (sandbox === undefined && route.subject === 'path') return noSuchSandbox;
  if (head.queryNames.length > 0) return refuseQuery(head.queryNames);
  if (head.values('expect').some((value) => value.toLowerCase() !== '100-continue'))
    return UNKNOWN_EXPECTATION;
  if (isWrite(route) && !route.hasEtag && CONDITIONS.some((name) => head.values(name).length > 0))
    return NO_ETAG;
  const ask = {
    sandbox: sandbox ?? 'default',
    body: undefined,
    field: (name: string) => joined(head.values(name)),
  };
  return isWrite(route) ? write(scope, arrival, route, ask) : route.handler(ask, scope.target);
}

async function write(
  scope: AdminScope,
  arrival: Arrival,
  route: Route,
  ask: AdminRequest,
): Promise<AdminResponse> {
  if (scope.isRecordBlocked()) return RECORDS_BLOCKED;
  const wrongType = hasDocument(route) ? judgeContentType(arrival.head) : undefined;
  if (wrongType !== undefined) return wrongType;
  const shut = scope.writes.enter();
  if (shut !== undefined) return shut;
  try {
    const reading = hasDocument(route) ? await arrival.readDocument() : NO_DOCUMENT;
    if (!reading.ok) return reading.response;
    // Asked once more: the body may have taken its time, and so may the writes before this one.
    return await scope.writes.run(() =>
      scope.isRecordBlocked()
        ? RECORDS_BLOCKED
        : route.handler({ ...ask, body: reading.document }, scope.target),
    );
  } finally {
    scope.writes.leave();
  }
}

function onBug({ log }: AdminScope, { request }: Arrival): (error: unknown) => AdminResponse {
  return (error) => {
    log.error({ ...describeBug(error), request }, 'admin request failed');
    return BUG;
  };
}

/** Undefined when there is none, or when the path names what no sandbox can be called. */
function sandboxOf({ route, id = '' }: RouteMatch): string | undefined {
  if (route?.subject === 'default') return 'default';
  return route?.subject === 'path' && isSandboxId(id) ? id : undefined;
}

function refuseRoute(allowed: readonly string[]): AdminResponse {
  if (allowed.length === 0) return NO_SUCH_PATH;
  const detail = 'This path does not know this method: Allow lists those that it knows';
  return refused({ status: 405, reason: 'method', detail, fields: { Allow: allowed.join(', ') } });
}

function refuseQuery(names: readonly string[]): AdminResponse {
  const msg = 'Unknown query parameter: remove it';
  return invalid(names.map((name) => ({ loc: ['query', toLocKey(name)], msg, type: 'extra_forbidden' })));
}

function joined(values: readonly string[]): string | undefined {
  return values.length === 0 ? undefined : values.join(', ');
}

const NO_DOCUMENT: DocumentReading = { ok: true, document: undefined };
const NO_SUCH_PATH: AdminResponse = refused({
  status: 404,
  reason: 'no_route',
  detail: 'There is no such path: GET / lists those that there are',
});
const CONDITIONS: readonly string[] = ['if-match', 'if-none-match'];
// Passed over, it would be a write that its sender believes to be conditional.
const NO_ETAG: AdminResponse = refused({
  status: 400,
  reason: 'no_etag',
  detail: 'What this route writes has no ETag: leave out If-Match and If-None-Match',
});
const UNKNOWN_EXPECTATION: AdminResponse = refused({
  status: 417,
  reason: 'expectation',
  detail: 'Of Expect only 100-continue is known: remove it',
});
const RECORDS_BLOCKED: AdminResponse = refused({
  status: 503,
  reason: 'records_blocked',
  detail:
    'Records cannot be written, so nothing is changed: make the output of the sidecar be read, then try again',
  fields: retryAfter(1000),
});
const BUG: AdminResponse = refused({
  status: 500,
  reason: 'bug',
  detail: 'This is a fault of the sidecar: its log names it beside the X-Request-Id of this answer',
});
