// Converts a stored event to the form in which the API returns it: OCSF 1.7.0, class API Activity, with the native record
// inside. Pure.
import { isIP } from 'node:net';
import type { AuditEventRow } from '../store/tables.ts';
import { activityOf } from './activity.ts';
import { classUid, maxAddress, methods, type OcsfEvent } from './ocsf-schema.ts';
import { type StoredRecord, parseStoredRecord } from './stored-record.ts';

/** The actor of what the platform does by itself. */
const SYSTEM = 'sallyport';
/** In place of the name of a user, for service keys. */
const SERVICE_KEY = 'service key';

/** An event with an unreadable record gets the status Unknown, so that the list stays usable; `audit verify` says why. */
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

/** Without a code there is no `http_response`: it would be invalid. */
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

/** A user without uid, name or account would be invalid. */
function actorOf(record: StoredRecord | undefined): OcsfEvent['actor'] {
  const uid = record?.user_id ?? null;
  const credential = record?.api_key_id ?? null;
  if (uid !== null) return { user: { uid, credential_uid: credential } };
  if (credential !== null) return { user: { uid, name: SERVICE_KEY, credential_uid: credential } };
  return { app_name: SYSTEM };
}

function endpointOf(record: StoredRecord | undefined): OcsfEvent['src_endpoint'] {
  const { client_host, client_port: port = null, x_forwarded_for } = record?.enrichments ?? {};
  const [ip] = addressesIn(client_host ?? '');
  if (ip === undefined) return { svc_name: SYSTEM };
  const before = addressesIn(x_forwarded_for ?? '');
  return {
    ip,
    ...(port !== null && port >= 0 && port <= 65_535 ? { port } : {}),
    ...(before.length > 0 ? { intermediate_ips: before } : {}),
  };
}

function addressesIn(list: string): string[] {
  const words = list.split(',').map((word) => word.trim().replace(/%.*$/, ''));
  return words.filter((word) => isIP(word) !== 0 && word.length <= maxAddress);
}

function toNativeRecord(
  row: AuditEventRow,
  record: StoredRecord | undefined,
): OcsfEvent['unmapped']['original_audit_log'] {
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
