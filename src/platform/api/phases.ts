// The phases of one request: `prepare` before the transaction, `handle` with its audit event in it, `after` and `respond` once
// it is committed. While a route prepares or responds, it holds no connection and no turn of its organization.
import { DomainError } from '../../base/domain-error.ts';
import { describeBug, type Log } from '../../base/log.ts';
import type { Authenticator } from '../identity/authentication.ts';
import { lockOrganization } from '../identity/organization-lock.ts';
import { sendRevocation } from '../identity/revocation-notices.ts';
import { writeConfirmed } from '../store/confirmed-write.ts';
import type { Database, Store } from '../store/database.ts';
import type { Grant } from './access.ts';
import { toEntry } from './shares/admission.ts';
import type { Outcome } from './responses.ts';
import { type RequestContext, signalOf } from './api-request.ts';
import { appendSuccess } from './audit-events.ts';
import type { Call, Route } from './route.ts';

export type PhaseScope = {
  /** The pools, within the shares of the caller. */
  reads(): Store;
  writes(): Store;
  readonly authenticator: Authenticator;
  readonly log: Log;
  /** Runs what waits for others, within the shares of the caller. */
  prepare<T>(work: () => Promise<T>): Promise<T>;
  /** The same, after the commit. */
  respond<T>(work: () => Promise<T>): Promise<T>;
};

export type Admitted = {
  readonly route: Route;
  readonly granted: Grant;
  readonly parts: Pick<Call, 'params' | 'query' | 'body'>;
  /** Called with the id of the audit event before the commit. */
  onEvent(id: string): void;
  /** What is thrown from here on is no failure of what was asked for. */
  onCommitted(): void;
  /** The body is not needed any more, although the request goes on. */
  release(): void;
};

/** Resolves when the outcome is committed, and for a route that responds by itself, when it has. */
export async function runPhases(
  scope: PhaseScope,
  context: RequestContext,
  admitted: Admitted,
): Promise<Outcome> {
  const { route, granted, parts } = admitted;
  let prepared = route.prepare === undefined ? undefined : await prepare(scope, context, admitted);
  if (route.respond === undefined) return commit(scope, context, admitted, prepared);
  // The place to wait is taken before anything is written: whoever finds none may try again.
  return scope.respond(async () => {
    const kept = await commitAndKeep(scope, context, admitted, prepared);
    prepared = undefined;
    admitted.release();
    const { params, query } = parts;
    const signal = signalOf(context.request);
    const { db } = scope.reads();
    const call = { ...granted, params, query, db, write: scope.writes().write, signal };
    return (await endedBy(signal, async () => route.respond?.(call, kept))) ?? {};
  });
}

async function prepare(
  scope: PhaseScope,
  { request }: RequestContext,
  { route, granted, parts }: Admitted,
): Promise<unknown> {
  const signal = signalOf(request);
  return endedBy(signal, () =>
    scope.prepare(async () => {
      const upload = route.upload?.open(request);
      return route.prepare?.({ ...granted, ...parts, db: scope.reads().db, signal, upload });
    }),
  );
}

/** In a frame of its own, which ends before anything waits: the body and what was prepared of it may be large. */
async function commitAndKeep(
  scope: PhaseScope,
  context: RequestContext,
  admitted: Admitted,
  prepared: unknown,
): Promise<unknown> {
  const { route, granted, parts } = admitted;
  const outcome = await commit(scope, context, admitted, prepared);
  return route.keep === undefined ? outcome : route.keep({ ...granted, ...parts }, outcome);
}

async function commit(
  scope: PhaseScope,
  context: RequestContext,
  admitted: Admitted,
  prepared: unknown,
): Promise<Outcome> {
  const { route } = admitted;
  try {
    const outcome = await handle(scope, context, admitted, prepared).catch(async (error: unknown) => {
      await discard(scope, context, admitted, { prepared, error });
      throw error;
    });
    admitted.onCommitted();
    await follow(scope, context, admitted, { outcome, prepared });
    return outcome;
  } finally {
    route.settle?.(prepared);
  }
}

/** Never rejects: what was asked for is committed, and the caller must not try it again. */
async function follow(
  { log }: PhaseScope,
  { request }: RequestContext,
  { route, granted, parts }: Admitted,
  { outcome, prepared }: { readonly outcome: Outcome; readonly prepared: unknown },
): Promise<void> {
  try {
    if (route.after !== undefined)
      await route.after({ ...granted, ...parts, signal: signalOf(request) }, outcome, prepared);
  } catch (error) {
    log.error({ ...describeBug(error), request: request.requestId }, 'the work after a commit failed');
  }
}

/** Never rejects: the response is the error of `handle`. */
async function discard(
  { log }: PhaseScope,
  { request: { requestId: request } }: RequestContext,
  { route }: Admitted,
  { prepared, error }: { readonly prepared: unknown; readonly error: unknown },
): Promise<void> {
  // An `unavailable` database may have committed.
  if (route.discard === undefined || !(error instanceof DomainError) || error.kind === 'unavailable') return;
  try {
    await route.discard(prepared);
  } catch (failure) {
    log.error({ ...describeBug(failure), request }, 'what a rejected request had prepared was not removed');
  }
}

async function handle(
  { reads, writes, authenticator }: PhaseScope,
  context: RequestContext,
  { route, granted, parts, onEvent }: Admitted,
  prepared: unknown,
): Promise<Outcome> {
  const { access } = route;
  const run = async (known: Grant, db: Database): Promise<Outcome> =>
    (await route.handle({ ...known, ...parts, db }, prepared)) ?? {};
  const confirm = (db: Database): Promise<Grant> =>
    access.confirm(toEntry(context.request, { db, authenticator }), granted);
  if (!hasTransaction(route)) {
    const { db } = reads();
    return run(route.prepare === undefined ? granted : await confirm(db), db);
  }
  const tracked = trackedIn(route, granted);
  const locks = route.revokes === true || route.locksOrganization === true;
  const isAtOnce = !locks && access.confirmsAtOnce?.(granted) === true;
  return writeConfirmed(writes(), { granted, confirm, isAtOnce }, async (trx, confirmed) => {
    if (tracked !== undefined && locks) await lockOrganization(trx, tracked);
    const { granted: found, result: outcome } = await confirmed((known) => run(known, trx));
    if (tracked === undefined) return outcome;
    if (route.revokes === true) await sendRevocation(trx, tracked);
    onEvent(await appendSuccess(trx, { route, context, granted: found }, outcome));
    return outcome;
  });
}

/** Whether the first thing that is done for the caller of the route is a transaction, which confirms the grant. */
export function confirmsFirst(route: Route): boolean {
  return hasTransaction(route) && route.prepare === undefined;
}

function hasTransaction({ tracking, method }: Route): boolean {
  return 'operation' in tracking || method !== 'GET' || tracking.inTransaction === true;
}

/** The organization whose audit log has the event of a call; undefined for a route without events. */
function trackedIn({ tracking, path }: Route, { organizationId }: Grant): string | undefined {
  if (!('operation' in tracking)) return undefined;
  if (organizationId === undefined)
    throw new Error(`${path} is tracked, and its access grants no organization`);
  return organizationId;
}

/** Runs what waits: where the signal ended it, its reason is the error. */
async function endedBy<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw signal.aborted && isAbort(error, signal) ? signal.reason : error;
  }
}

/** Whether a wait ended because the signal asked for it: some functions reject with its reason, others with an AbortError. */
function isAbort(error: unknown, { reason }: AbortSignal): boolean {
  return error === reason || (error instanceof Error && error.name === 'AbortError');
}
