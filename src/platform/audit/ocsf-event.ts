// An event as others read it: OCSF 1.7.0, class API Activity, with the native record inside. Pure; it must not know where
// events are kept.
import { isIP } from 'node:net';
import type { AuditEventRow } from '../store/tables.ts';
import { type ActivityId, activityOf } from './activity.ts';
import { type StoredRecord, parseStoredRecord } from './stored-record.ts';

export const classUid = 6003;
export const methods = [
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'TRACE',
] as const;
/** The longest that an address may be in OCSF. */
export const maxAddress = 40;

/** The platform itself, for what it does unasked. */
const SYSTEM = 'sallyport';
/** Stands where a user's name would, for the keys that are nobody's. */
const SERVICE_KEY = 'service key';

/** Everything that the log knows. Null stands for what it does not. */
export type NativeRecord = {
  readonly id: string;
  readonly operation_name: string;
  readonly operation_succeeded: boolean | null;
  readonly request_time: string;
  readonly api_key_id: string | null;
  readonly user_id: string | null;
  readonly organization_id: string;
  readonly workspace_id: string | null;
  readonly enrichments: StoredRecord['enrichments'] | null;
};

export type OcsfEvent = {
  readonly class_uid: 6003;
  readonly class_name: 'API Activity';
  readonly category_uid: 6;
  readonly category_name: 'Application Activity';
  readonly severity_id: 99;
  readonly type_uid: number;
  readonly activity_id: ActivityId;
  readonly activity_name: string;
  readonly status_id: 0 | 1 | 2;
  readonly status: 'Unknown' | 'Success' | 'Failure';
  /** Milliseconds. */
  readonly time: number;
  readonly metadata: {
    readonly version: '1.7.0';
    readonly uid: string;
    readonly product: { readonly name: 'Sallyport'; readonly vendor_name: 'Sallyport' };
  };
  readonly api: { readonly operation: string };
  readonly http_request?: {
    readonly http_method?: (typeof methods)[number];
    readonly url: { readonly path: string };
  };
  readonly http_response?: { readonly code: number };
  readonly actor: {
    readonly user?: {
      readonly uid: string | null;
      readonly name?: string;
      readonly credential_uid: string | null;
    };
    readonly app_name?: string;
  };
  readonly src_endpoint: {
    readonly ip?: string;
    readonly port?: number;
    readonly intermediate_ips?: readonly string[];
    readonly svc_name?: string;
  };
  readonly resources: readonly { readonly uid: string }[];
  readonly unmapped: { readonly original_audit_log: NativeRecord };
};

/** An event whose record cannot be read any more has the status Unknown: the verifier says why, the list goes on. */
export function toOcsfEvent(row: AuditEventRow): OcsfEvent {
  const record = parseStoredRecord(row.record);
  const activity = activityOf(row.operation);
  return {
    class_uid: classUid,
    class_name: 'API Activity',
    category_uid: 6,
    category_name: 'Application Activity',
    severity_id: 99,
    type_uid: classUid * 100 + activity.id,
    activity_id: activity.id,
    activity_name: activity.name,
    ...statusOf(record),
    time: row.time.getTime(),
    metadata: {
      version: '1.7.0',
      uid: row.id,
      product: { name: 'Sallyport', vendor_name: 'Sallyport' },
    },
    api: { operation: row.operation },
    ...exchangeOf(record),
    actor: actorOf(record),
    src_endpoint: endpointOf(record),
    resources: (record?.enrichments.resource_ids ?? []).map((uid) => ({ uid })),
    unmapped: { original_audit_log: toNativeRecord(row, record) },
  };
}

function statusOf(record: StoredRecord | undefined): Pick<OcsfEvent, 'status_id' | 'status'> {
  if (record === undefined) return { status_id: 0, status: 'Unknown' };
  return record.operation_succeeded
    ? { status_id: 1, status: 'Success' }
    : { status_id: 2, status: 'Failure' };
}

/** `http_response` is there only with a code, without which it would not validate. */
function exchangeOf(record: StoredRecord | undefined): Pick<OcsfEvent, 'http_request' | 'http_response'> {
  const { request_method, request_path: path, response_status_code: code } = record?.enrichments ?? {};
  const method = methods.find((name) => name === request_method);
  return {
    ...(typeof path === 'string'
      ? { http_request: { ...(method === undefined ? {} : { http_method: method }), url: { path } } }
      : {}),
    ...(typeof code === 'number' ? { http_response: { code } } : {}),
  };
}

/** A user without uid, name or account would not validate. */
function actorOf(record: StoredRecord | undefined): OcsfEvent['actor'] {
  const uid = record?.user_id ?? null;
  const credential = record?.api_key_id ?? null;
  if (uid !== null) return { user: { uid, credential_uid: credential } };
  if (credential !== null) return { user: { uid, name: SERVICE_KEY, credential_uid: credential } };
  return { app_name: SYSTEM };
}

function endpointOf(record: StoredRecord | undefined): OcsfEvent['src_endpoint'] {
  const { client_host, client_port, x_forwarded_for } = record?.enrichments ?? {};
  const [ip] = addressesIn(client_host ?? '');
  if (ip === undefined) return { svc_name: SYSTEM };
  const before = addressesIn(x_forwarded_for ?? '');
  return {
    ip,
    ...(isPort(client_port) ? { port: client_port } : {}),
    ...(before.length > 0 ? { intermediate_ips: before } : {}),
  };
}

function addressesIn(list: string): readonly string[] {
  const words = list.split(',').map((word) => word.trim().replace(/%.*$/, ''));
  return words.filter((word) => isIP(word) !== 0 && word.length <= maxAddress);
}

function isPort(port: number | null | undefined): port is number {
  return typeof port === 'number' && port >= 0 && port <= 65_535;
}

function toNativeRecord(row: AuditEventRow, record: StoredRecord | undefined): NativeRecord {
  return {
    id: row.id,
    operation_name: row.operation,
    operation_succeeded: record?.operation_succeeded ?? null,
    request_time: row.time.toISOString(),
    api_key_id: record?.api_key_id ?? null,
    user_id: record?.user_id ?? null,
    organization_id: row.organization_id,
    workspace_id: row.workspace_id,
    enrichments: record?.enrichments ?? null,
  };
}
