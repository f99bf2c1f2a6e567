// Converts a stored event to the format that the API returns: OCSF 1.7.0, class API Activity, which contains the native
// record. Existing clients of the list require members that OCSF does not, and OCSF has no null: those members are never
// left out, and what is not known has the value that means it. Pure.
import { isIP } from 'node:net';
import { parseHop } from '../../base/forwarded-hop.ts';
import type { AuditEventRow } from '../store/tables.ts';
import { activityOf } from './activity.ts';
import { classUid, maxAddress, methods, type OcsfEvent } from './ocsf-schema.ts';
import { type StoredRecord, parseStoredRecord } from './stored-record.ts';

/** The actor of operations that no caller requested, and the source endpoint of events without a client address. */
const SYSTEM = 'sallyport';
/** The user name of service keys. */
const SERVICE_KEY = 'service key';

/** What an event is made of: the hashes of the chain are for its verification, and would be a third of what is read. */
export const LISTED_COLUMNS = [
  ...(['id', 'organization_id', 'workspace_id', 'operation'] as const),
  ...(['time', 'seq', 'record'] as const),
] as const;
export type ListedEventRow = Pick<AuditEventRow, (typeof LISTED_COLUMNS)[number]>;

/** An event with an unreadable record gets the status Unknown, so that the list stays usable. `audit verify` reports why. */
export function toOcsfEvent(row: ListedEventRow): OcsfEvent {
  const record = parseStoredRecord(row.record);
  const activity = activityOf(row.operation);
  return {
    class_uid: classUid,
    class_name: 'API Activity',
    category_uid: 6,
    category_name: 'Application Activity',
    severity_id: 99,
    severity: 'Other',
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
    ...httpOf(record),
    actor: actorOf(record),
    src_endpoint: endpointOf(record),
    resources: resourcesOf(record),
    unmapped: { original_audit_log: toNativeRecord(row, record) },
  };
}

function statusOf(record: StoredRecord | undefined): Pick<OcsfEvent, 'status_id' | 'status'> {
  if (record === undefined) return { status_id: 0, status: 'Unknown' };
  return record.operation_succeeded
    ? { status_id: 1, status: 'Success' }
    : { status_id: 2, status: 'Failure' };
}

function resourcesOf(record: StoredRecord | undefined): OcsfEvent['resources'] {
  const { resource_ids: ids = [], resource_names: names = [] } = record?.enrichments ?? {};
  return ids.map((uid, at) => {
    const name = names[at];
    return name === undefined ? { uid } : { uid, name };
  });
}

/**
 * Existing clients require a request and a response of every event, and OCSF a method and a code in them. What is not known is
 * nominal: what the operator did by a command had no request. The native record says so.
 */
function httpOf(record: StoredRecord | undefined): Pick<OcsfEvent, 'http_request' | 'http_response'> {
  const { request_method, request_path, request_id, response_status_code } = record?.enrichments ?? {};
  const method = methods.find((name) => name === request_method) ?? 'POST';
  const nominal = record === undefined ? 0 : record.operation_succeeded ? 200 : 500;
  return {
    http_request: {
      ...(request_id === undefined ? {} : { uid: request_id }),
      http_method: method,
      url: { path: request_path ?? '/' },
    },
    http_response: { code: response_status_code ?? nominal },
  };
}

/** A service key acts for no user: it is a user of the type Service, by its own id. */
function actorOf(record: StoredRecord | undefined): OcsfEvent['actor'] {
  const uid = record?.user_id ?? null;
  const credential = record?.api_key_id ?? null;
  if (uid !== null) return { user: { uid, type: 'User', type_id: 1, credential_uid: credential } };
  // Also in a session, whose events name no credential.
  const service = credential ?? record?.enrichments.session_key_id;
  if (service !== undefined)
    return {
      user: { uid: service, name: SERVICE_KEY, type: 'Service', type_id: 4, credential_uid: credential },
    };
  const user = { uid: NOBODY, name: SYSTEM, type: 'System', type_id: 3, credential_uid: null } as const;
  return { user, app_name: SYSTEM };
}

/** The nil UUID (RFC 9562 §5.9). */
const NOBODY = '00000000-0000-0000-0000-000000000000';
/** The address and the port that no peer has. */
const UNSPECIFIED = { ip: '0.0.0.0', port: 0, intermediate_ips: [] };

/** A client without a port of its own is behind trusted proxies. */
function endpointOf(record: StoredRecord | undefined): OcsfEvent['src_endpoint'] {
  const { client_host, client_port, x_forwarded_for } = record?.enrichments ?? {};
  const ip = addressOf(client_host ?? '');
  if (ip === undefined) return { ...UNSPECIFIED, svc_name: SYSTEM };
  const isPort = typeof client_port === 'number' && client_port >= 0 && client_port <= 65_535;
  return {
    ip,
    port: isPort ? client_port : UNSPECIFIED.port,
    intermediate_ips: client_port === null ? proxiesAfter(ip, x_forwarded_for ?? '') : [],
  };
}

/** The proxies between the client and us. What is left of the client in the list is the client's own invention. */
function proxiesAfter(client: string, forwardedFor: string): string[] {
  const hops = forwardedFor.split(',').map((hop) => addressOf(parseHop(hop) ?? ''));
  return hops.slice(hops.lastIndexOf(client) + 1).filter((hop) => hop !== undefined);
}

function addressOf(text: string): string | undefined {
  const address = text.replace(/%.*$/, '');
  return isIP(address) !== 0 && address.length <= maxAddress ? address : undefined;
}

function toNativeRecord(row: ListedEventRow, record: StoredRecord | undefined) {
  return {
    id: row.id,
    operation_name: row.operation,
    operation_succeeded: record?.operation_succeeded ?? null,
    request_time: row.time.toISOString(),
    api_key_id: record?.api_key_id ?? null,
    user_id: record?.user_id ?? null,
    // Existing clients know a user by either name.
    ls_user_id: record?.user_id ?? null,
    organization_id: row.organization_id,
    workspace_id: row.workspace_id,
    enrichments: record === undefined ? null : withoutUnknown(record.enrichments),
  };
}

/** Existing clients read a method and a path as texts where they are present. */
function withoutUnknown({ request_method, request_path, ...rest }: StoredRecord['enrichments']) {
  return {
    ...(request_method === null ? {} : { request_method }),
    ...(request_path === null ? {} : { request_path }),
    ...rest,
    // Nobody owns a resource here: organizations and workspaces do.
    resource_owner_ls_user_id: null,
  };
}
