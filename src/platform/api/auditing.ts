// The audit event of a request: in its own transaction when it succeeds, in one of its own when it was refused or
// failed. It must not know how the log is kept.
import { describeBug, type Log } from '../../base/log.ts';
import { type AuditEntry, appendEvent, hasEvent } from '../audit/journal.ts';
import type { Operation } from '../audit/operations.ts';
import type { Transaction } from '../store/database.ts';
import type { Granted } from './access.ts';
import type { Call, Outcome, Route } from './route.ts';
import type { Write } from './write-turns.ts';

/** The part of a case that an event tells of. */
export type Reported = {
  readonly request: Request;
  readonly arrival: {
    readonly requestId: string;
    readonly host: string | undefined;
    readonly port: number | undefined;
  };
  readonly match: { readonly params: Readonly<Record<string, string>> };
};

/** The last statement of the transaction of what succeeded. Answers the event's id. */
export async function withEvent(
  trx: Transaction,
  reported: {
    readonly route: Route;
    readonly one: Reported;
    readonly call: Call;
    readonly operation: Operation;
    readonly outcome: Outcome;
  },
): Promise<string> {
  const { route, one, call, operation, outcome } = reported;
  const resources = outcome.resources ?? idsIn(one);
  const rest = { operation, isSuccess: true, status: route.success.status, resources };
  return appendEvent(trx, { ...subjectOf(call), ...rest, request: requestOf(one) });
}

/**
 * Never rejects: the answer stands, and the log says that its event is missing. Nothing is recorded of who is not known,
 * for there is no organization whose log it could stand in.
 */
export async function recordFailure(
  { write, log }: { readonly write: Write; readonly log: Log },
  reported: {
    readonly route: Route;
    readonly one: Reported;
    readonly known: Granted | undefined;
    readonly status: number;
    /** The event of its success, where that was written and its commit not answered: it may stand all the same. */
    readonly pending: string | undefined;
  },
): Promise<void> {
  const { route, one, known, status, pending } = reported;
  if (!('operation' in route.tracking) || known === undefined) return;
  const { operation } = route.tracking;
  const entry: AuditEntry = {
    ...subjectOf(known),
    operation,
    isSuccess: false,
    status,
    resources: idsIn(one),
    request: requestOf(one),
  };
  try {
    await write(known.organizationId, async (trx) => {
      await appendEvent(trx, entry);
      // Whoever wrote it held the chain, which is ours now: it stands, or never will.
      if (pending !== undefined && (await hasEvent(trx, pending))) throw new Succeeded();
    });
  } catch (error) {
    if (error instanceof Succeeded) return;
    log.error(
      { ...describeBug(error), request: one.arrival.requestId },
      'a failure is missing in the audit log',
    );
  }
}

/** Undoes the event of a failure that was none. */
class Succeeded extends Error {}

function subjectOf({
  caller,
  organizationId,
  workspaceId,
}: Granted): Pick<AuditEntry, 'organizationId' | 'workspaceId' | 'userId' | 'keyId'> {
  const workspace = workspaceId === '' ? undefined : workspaceId;
  return { organizationId, workspaceId: workspace, userId: caller?.userId, keyId: caller?.keyId };
}

function requestOf({ request, arrival }: Reported): AuditEntry['request'] {
  return {
    method: request.method,
    path: new URL(request.url).pathname,
    clientHost: arrival.host,
    clientPort: arrival.port,
    forwardedFor: request.headers.get('x-forwarded-for') ?? undefined,
  };
}

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** What the path names, whether it is there or not; written as ids are everywhere else. */
function idsIn({ match }: Reported): readonly string[] {
  return Object.values(match.params)
    .filter((value) => UUID.test(value))
    .map((id) => id.toLowerCase());
}
