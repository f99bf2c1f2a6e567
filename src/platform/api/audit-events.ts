// The audit event of a request: in the request's own transaction when it succeeds, in a separate one when it was rejected
// or failed.
import { type AuditEntry, appendWithCommit } from '../audit/journal.ts';
import type { Transaction } from '../store/database.ts';
import type { Grant } from './access.ts';
import type { PlatformErrorCode } from './errors.ts';
import { type Outcome, chooseResponse } from './responses.ts';
import type { RequestContext } from './api-request.ts';
import type { Route } from './route.ts';
import type { FailureEvents } from './shares/failure-events.ts';

type Audited<G> = { readonly route: Route; readonly context: RequestContext; readonly granted: G };

/** The last statement of the transaction of a success. Returns the event's id. */
export async function appendSuccess(
  trx: Transaction,
  audited: Audited<Grant>,
  outcome: Outcome,
): Promise<string> {
  const { resources, resourceNames, workspaceId = audited.granted.workspaceId } = outcome;
  const { status } = chooseResponse(audited.route.responses, outcome);
  const granted = { ...audited.granted, ...(workspaceId && { workspaceId }) };
  const entry = toEntry(
    { ...audited, granted },
    { isSuccess: true, status, ...(resources && { resources }), resourceNames },
  );
  if (entry === undefined) throw new Error(`${audited.route.path} is not tracked`);
  return appendWithCommit(trx, entry);
}

/**
 * Never rejects: the response does not change. A caller who is not known leaves no event, for there is no organization whose
 * log could hold it.
 */
export async function recordFailure(
  failures: FailureEvents,
  failed: Audited<Grant | undefined> & {
    readonly status: number;
    /** That of its error. */
    readonly code: string;
    /** The event of its success, where the outcome of the commit is unknown: it may be stored all the same. */
    readonly pending: string | undefined;
  },
): Promise<void> {
  const { granted, status, code, pending } = failed;
  const entry = granted && toEntry({ ...failed, granted }, { isSuccess: false, status });
  if (entry === undefined) return;
  const recorded = failures.record({ entry, pending });
  // Who found no place, or no database, does not wait a second time.
  if (pending !== undefined || !OVERLOADED.has(code)) await recorded;
}

const OVERLOADED: ReadonlySet<string> = new Set<PlatformErrorCode>(['too_many', 'unavailable']);

/** Undefined where the route is not tracked, or grants no organization. */
function toEntry(
  { route, context: { request, params }, granted }: Audited<Grant>,
  result: Pick<AuditEntry, 'isSuccess' | 'status'> & Partial<Pick<AuditEntry, 'resources' | 'resourceNames'>>,
): AuditEntry | undefined {
  const { caller, organizationId, workspaceId = workspaceIn(params) } = granted;
  const { tracking } = route;
  if (!('operation' in tracking) || organizationId === undefined) return undefined;
  return {
    operation: tracking.operation,
    organizationId,
    workspaceId,
    userId: caller?.userId,
    // Of a session no credential is named, and the session is.
    keyId: caller?.sessionId === undefined ? caller?.keyId : undefined,
    session: caller?.sessionId === undefined ? undefined : { id: caller.sessionId, keyId: caller.keyId },
    issuedBy: caller?.issuedBy,
    resources: idsIn(params),
    ...result,
    request: {
      method: request.head.method,
      path: pathOf(route, params),
      clientHost: request.client.host,
      clientPort: request.client.port,
      forwardedFor: request.head.field('x-forwarded-for'),
      id: request.requestId,
    },
  };
}

/** A parameter that its schema rejects stays in braces: it may be anything, for example a key in the place of its id. */
function pathOf({ path, params }: Route, given: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (braces, name: string) => {
    const value = given[name] ?? '';
    const isValid = params?.shape[name]?.safeParse(value).success === true;
    return isValid ? encodeURIComponent(value) : braces;
  });
}

/** Of a route in the organization whose path names a workspace. */
function workspaceIn({ workspace_id = '' }: Readonly<Record<string, string>>): string | undefined {
  return UUID.test(workspace_id) ? workspace_id.toLowerCase() : undefined;
}

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** The ids in the path, whether or not there is such a resource; in lower case, as everywhere else. */
function idsIn(params: Readonly<Record<string, string>>): readonly string[] {
  return Object.values(params)
    .filter((value) => UUID.test(value))
    .map((id) => id.toLowerCase());
}
