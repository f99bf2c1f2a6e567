// Writes the audit log: appends one event to an organization's chain, in the transaction of the change that it records.
// Request bodies, query strings and headers are never recorded, except addresses. What a client sends by mistake, such as a
// key in the place of an id, could not be removed for 400 days.
import { randomUUID } from 'node:crypto';
import { parseHop } from '../../base/forwarded-hop.ts';
import type { Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { defineStatement } from '../store/statement.ts';
import type { Operation } from './operations.ts';
import type { StoredRecord } from './stored-record.ts';

/** Without id, time and number, which the log adds. */
export type AuditEntry = {
  readonly organizationId: string;
  readonly workspaceId?: string | undefined;
  readonly operation: Operation;
  readonly isSuccess: boolean;
  readonly userId?: string | undefined;
  /** The key of the caller; undefined for what the system does by itself. */
  readonly keyId?: string | undefined;
  /** In place of a key: the session of the caller, and the key that began it. */
  readonly session?: { readonly id: string; readonly keyId: string } | undefined;
  /** The key with which somebody else created the personal token of the caller, who may be acting for its user. */
  readonly issuedBy?: string | undefined;
  readonly request?:
    | {
        readonly method: string;
        /** Of the route, with the parameters that are valid. */
        readonly path: string;
        readonly clientHost: string | undefined;
        readonly clientPort: number | undefined;
        readonly forwardedFor: string | undefined;
        /** The X-Request-Id of the response. */
        readonly id?: string | undefined;
      }
    | undefined;
  /** Of the response; undefined when there was none. */
  readonly status?: number | undefined;
  /** How many requests it stands for, where they failed too often for an event of their own. */
  readonly requests?: number | undefined;
  /** Ids of the affected resources. */
  readonly resources: readonly string[];
  /** Their names, in the same order. */
  readonly resourceNames?: readonly string[] | undefined;
};

/** Clients control the length of these texts, so they are cut. */
const MAX_PATH = 1024;
const MAX_FORWARDED = 256;

/**
 * Must be the last statement of its transaction: it locks the organization's chain until the commit. Returns the event's id.
 * With the `id` of another event it is stored instead of that one, or not at all.
 */
export async function appendEvent(trx: Transaction, entry: AuditEntry, id?: string): Promise<string> {
  const event = toEvent(entry, id);
  await append(trx, event);
  return event.id;
}

/** The same for a transaction that does not look at its event: it is appended with the COMMIT, which rejects if that fails. */
export async function appendWithCommit(trx: Transaction, entry: AuditEntry): Promise<string> {
  const event = toEvent(entry);
  await appendLast(trx, event);
  return event.id;
}

type NewEvent = {
  readonly organizationId: string;
  readonly operation: Operation;
  readonly workspaceId: string | null;
  readonly record: string;
  /** Chosen here: it is known before the commit, whose outcome it is looked up by. */
  readonly id: string;
};

function toEvent(entry: AuditEntry, id: string = randomUUID()): NewEvent {
  const { organizationId, operation, workspaceId = null } = entry;
  const record = JSON.stringify(toRecord(entry));
  return { organizationId, operation, workspaceId, record, id };
}

const append = defineStatement(
  'audit-append',
  (db, { organizationId, operation, workspaceId, record, id }: NewEvent) =>
    sql`select public.audit_append_with_id(${organizationId}, ${operation}, ${workspaceId}, ${record}, ${id})`.compile(
      db,
    ),
);

// Statements are distinguished by their text: this one is not that of the statement above.
const appendLast = defineStatement(
  'audit-append-last',
  (db, { organizationId, operation, workspaceId, record, id }: NewEvent) =>
    sql`select from public.audit_append_with_id(${organizationId}, ${operation}, ${workspaceId}, ${record}, ${id})`.compile(
      db,
    ),
  { isSentWithCommit: true },
);

function toRecord({
  request,
  isSuccess,
  keyId,
  issuedBy,
  session,
  userId,
  status,
  resources,
  resourceNames,
  requests,
}: AuditEntry): StoredRecord {
  return {
    operation_succeeded: isSuccess,
    api_key_id: keyId ?? null,
    user_id: userId ?? null,
    enrichments: {
      request_method: request?.method ?? null,
      request_path: request === undefined ? null : toPath(request.path),
      client_host: request?.clientHost === undefined ? null : withoutZone(request.clientHost),
      client_port: request?.clientPort ?? null,
      x_forwarded_for: request?.forwardedFor === undefined ? null : lastHops(request.forwardedFor),
      response_status_code: status ?? null,
      resource_ids: [...resources],
      ...(resourceNames === undefined ? {} : { resource_names: [...resourceNames] }),
      ...(issuedBy === undefined ? {} : { credential_issued_by: issuedBy }),
      ...(session === undefined ? {} : { session_id: session.id, session_key_id: session.keyId }),
      ...(UUID.test(request?.id ?? '') ? { request_id: request?.id } : {}),
      request_count: requests,
    },
  };
}

/** Ours are. A caller may have sent any other text in its place. */
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

function toPath(target: string): string {
  const path = target.replace(/[?#].*$/s, '');
  return path.replace(CREDENTIAL, '...').slice(0, MAX_PATH).toWellFormed();
}

/** The prefixes of our keys and tokens, and what may follow them. */
const CREDENTIAL = /sp_[a-z]{2}_[\w-]+/gi;

/** The zone of a scoped IPv6 address is any text, and behind a proxy the client may have chosen it. */
function withoutZone(host: string): string {
  return host.replace(/%.*$/s, '');
}

/**
 * The end of the list: the nearest proxies wrote it, and what a client puts before must not push it out. Only addresses are
 * recorded; RFC 7239 (section 6.2) has a name for everything else.
 */
function lastHops(hops: string): string {
  return cut(hops)
    .split(',')
    .map((hop) => (isHop(hop) ? hop.trim() : 'unknown'))
    .join(', ');
}

/** The rest of an address that was cut could be read as another address. */
function cut(hops: string): string {
  if (hops.length <= MAX_FORWARDED) return hops;
  const last = hops.slice(-MAX_FORWARDED);
  return last.includes(',') ? last.slice(last.indexOf(',') + 1) : last;
}

function isHop(hop: string): boolean {
  return parseHop(hop) !== undefined && !hop.includes('%');
}
