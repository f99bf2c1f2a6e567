// What existing clients of `GET /api/v1/audit-logs` require of an event, as JSON Schema: every member that they read is
// present, with null where they accept it.
import { operations } from '../../../src/platform/audit/operations.ts';

type Schema = Readonly<Record<string, unknown>>;

const uuid: Schema = { type: 'string', pattern: '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$' };
const text: Schema = { type: 'string' };
const integer: Schema = { type: 'integer' };

function orNull(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] };
}

/** All members are required. */
function objectOf(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', properties, required: Object.keys(properties) };
}

function listOf(items: Schema): Schema {
  return { type: 'array', items };
}

const nativeRecord = objectOf({
  id: uuid,
  operation_name: text,
  operation_succeeded: orNull({ type: 'boolean' }),
  request_time: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?Z$' },
  api_key_id: orNull(uuid),
  user_id: orNull(uuid),
  ls_user_id: orNull(uuid),
  organization_id: orNull(uuid),
  workspace_id: orNull(uuid),
  enrichments: orNull({
    type: 'object',
    properties: {
      request_method: text,
      request_path: text,
      client_host: orNull(text),
      client_port: orNull(integer),
      x_forwarded_for: orNull(text),
      response_status_code: orNull(integer),
      resource_ids: orNull(listOf(text)),
    },
  }),
});

export const listedEvent: Schema = objectOf({
  class_uid: { const: 6003 },
  class_name: { const: 'API Activity' },
  category_uid: { const: 6 },
  category_name: { const: 'Application Activity' },
  severity_id: { const: 99 },
  type_uid: { enum: [600_300, 600_301, 600_302, 600_303, 600_304, 600_399] },
  activity_id: { enum: [0, 1, 2, 3, 4, 99] },
  activity_name: text,
  status_id: { enum: [0, 1, 2, 99] },
  status: text,
  time: integer,
  metadata: objectOf({ uid: uuid, product: objectOf({ name: text, vendor_name: text }) }),
  api: objectOf({ operation: { enum: operations } }),
  http_request: objectOf({ http_method: text, url: objectOf({ path: text }) }),
  http_response: objectOf({ code: orNull(integer) }),
  actor: objectOf({ user: objectOf({ uid: orNull(uuid), credential_uid: orNull(uuid) }) }),
  src_endpoint: objectOf({
    ip: orNull(text),
    port: orNull(integer),
    intermediate_ips: orNull(listOf(text)),
  }),
  resources: listOf(objectOf({ uid: uuid })),
  unmapped: objectOf({ original_audit_log: nativeRecord }),
});

export const listedEvents: Schema = objectOf({ cursor: orNull(text), items: listOf(listedEvent) });
