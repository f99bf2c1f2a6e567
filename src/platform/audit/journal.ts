// Writes the audit log: one event at the end of an organization's chain, in the transaction of what it tells of. What
// was sent is none of its business: no body, no query, no header but where the request came from.
import { sql } from '../store/sql.ts';
import type { Transaction } from '../store/database.ts';
import type { Operation } from './operations.ts';
import type { StoredRecord } from './stored-record.ts';

/** The native record, but for what the log adds: id, time and place in the chain. */
export type AuditEntry = {
  readonly organizationId: string;
  readonly workspaceId: string | undefined;
  readonly operation: Operation;
  readonly isSuccess: boolean;
  readonly userId: string | undefined;
  /** The key that was used; undefined for what the system does by itself. */
  readonly keyId: string | undefined;
  readonly request:
    | {
        readonly method: string;
        readonly path: string;
        readonly clientHost: string | undefined;
        readonly clientPort: number | undefined;
        readonly forwardedFor: string | undefined;
      }
    | undefined;
  /** Of the answer; undefined when there was none. */
  readonly status: number | undefined;
  /** Ids of what was affected. */
  readonly resources: readonly string[];
};

/** What a caller can make as long as he likes is cut here. */
const MAX_PATH = 1024;
const MAX_FORWARDED = 256;

/** The last statement of its transaction: it holds the organization's chain until the commit. Answers the event's id. */
export async function appendEvent(trx: Transaction, entry: AuditEntry): Promise<string> {
  const record = JSON.stringify(toRecord(entry));
  const { organizationId, operation, workspaceId = null } = entry;
  const { rows } = await sql<{ readonly id: string }>`
    select public.audit_append(${organizationId}, ${operation}, ${workspaceId}, ${record}) as id`.execute(
    trx,
  );
  const [row] = rows;
  if (row === undefined) throw new Error('the audit log took no event');
  return row.id;
}

/** Whether the transaction of this event was committed after all; asked in one that holds the same chain. */
export async function hasEvent(trx: Transaction, id: string): Promise<boolean> {
  const found = await trx.selectFrom('audit_events').select('seq').where('id', '=', id).executeTakeFirst();
  return found !== undefined;
}

function toRecord({ request, isSuccess, keyId, userId, status, resources }: AuditEntry): StoredRecord {
  return {
    operation_succeeded: isSuccess,
    api_key_id: keyId ?? null,
    user_id: userId ?? null,
    enrichments: {
      request_method: request?.method ?? null,
      request_path: request === undefined ? null : toText(withoutQuery(request.path), MAX_PATH),
      client_host: request?.clientHost ?? null,
      client_port: request?.clientPort ?? null,
      x_forwarded_for: request?.forwardedFor === undefined ? null : lastHops(request.forwardedFor),
      response_status_code: status ?? null,
      resource_ids: resources,
    },
  };
}

function withoutQuery(path: string): string {
  return path.replace(/[?#].*$/s, '');
}

/** The proxies nearest to us wrote the end of it; what a client sends before must not push that out. */
function lastHops(hops: string): string {
  if (hops.length <= MAX_FORWARDED) return hops.toWellFormed();
  const last = hops.slice(-MAX_FORWARDED).toWellFormed();
  // The rest of an address may read like another one.
  return last.includes(',') ? last.slice(last.indexOf(',') + 1).trim() : last;
}

function toText(value: string, max: number): string {
  return value.slice(0, max).toWellFormed();
}
