// The phases of one request: `prepare` before the transaction, `handle` with its audit event in it, `after` once it is
// committed. While a route prepares, it holds no connection and no turn of its organization.
import { describeBug, type Log } from '../../base/log.ts';
import type { Authenticator } from '../identity/authentication.ts';
import type { Database } from '../store/database.ts';
import type { RequestPools } from '../store/pools.ts';
import type { Entry, Grant } from './access.ts';
import type { Outcome } from './responses.ts';
import { type ApiRequest, type RequestContext, signalOf } from './api-request.ts';
import { appendSuccess } from './audit-events.ts';
import type { Call, Route } from './route.ts';

export type PhaseScope = {
  /** Within the shares of the caller. */
  readonly pools: Pick<RequestPools, 'reads' | 'writes'>;
  readonly authenticator: Authenticator;
  readonly log: Log;
  /** Runs what waits for others, within the shares of the caller. */
  prepare<T>(work: () => Promise<T>): Promise<T>;
};

export type Admitted = {
  readonly route: Route;
  readonly granted: Grant;
  readonly parts: Pick<Call, 'params' | 'query' | 'body'>;
  /** Called with the id of the audit event before the commit. */
  onEvent(id: string): void;
};

/** Resolves when the outcome is committed. */
export async function runPhases(
  scope: PhaseScope,
  context: RequestContext,
  admitted: Admitted,
): Promise<Outcome> {
  const { route, granted, parts } = admitted;
  const call = { ...granted, ...parts };
  let prepared: unknown;
  if (route.prepare !== undefined) {
    const signal = signalOf(context.request);
    try {
      prepared = await scope.prepare(async () => {
        const upload = route.upload?.open(context.request);
        return route.prepare?.({ ...call, db: scope.pools.reads.db, signal, upload });
      });
    } catch (error) {
      throw signal.aborted && isAbort(error, signal) ? signal.reason : error;
    }
  }
  const outcome = await handle(scope, context, admitted, prepared);
  try {
    if (route.after !== undefined) await route.after({ ...call, signal: signalOf(context.request) }, outcome);
  } catch (error) {
    // What was asked for is committed: the caller must not try it again.
    scope.log.error(
      { ...describeBug(error), request: context.request.requestId },
      'the work after a commit failed',
    );
  }
  return outcome;
}

async function handle(
  { pools, authenticator }: PhaseScope,
  context: RequestContext,
  { route, granted, parts, onEvent }: Admitted,
  prepared: unknown,
): Promise<Outcome> {
  const { access, tracking, method } = route;
  const run = async (known: Grant, db: Database): Promise<Outcome> =>
    (await route.handle({ ...known, ...parts, db }, prepared)) ?? {};
  const confirm = (db: Database): Promise<Grant> =>
    access.confirm(toEntry(context.request, { db, authenticator }), granted);
  if (!('operation' in tracking)) {
    const { db } = method === 'GET' ? pools.reads : pools.writes;
    return run(method === 'GET' && route.prepare === undefined ? granted : await confirm(db), db);
  }
  if (granted.organizationId === undefined)
    throw new Error(`${route.path} is tracked, and its access grants no organization`);
  return pools.writes.write(async (trx) => {
    const confirmed = await confirm(trx);
    const outcome = await run(confirmed, trx);
    onEvent(await appendSuccess(trx, { route, context, granted: confirmed }, outcome));
    return outcome;
  });
}

export function toEntry(
  { head, client, requestId, origin }: ApiRequest,
  {
    db,
    authenticator,
    onCaller = () => undefined,
  }: Pick<Entry, 'db' | 'authenticator'> & Partial<Pick<Entry, 'onCaller'>>,
): Entry {
  return { head, peer: client.host ?? '', client, requestId, origin, db, authenticator, onCaller };
}

/** Whether a wait ended because the signal asked for it: some functions reject with its reason, others with an AbortError. */
function isAbort(error: unknown, { reason }: AbortSignal): boolean {
  return error === reason || (error instanceof Error && error.name === 'AbortError');
}
