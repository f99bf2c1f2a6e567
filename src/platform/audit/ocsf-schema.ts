// The schema of the events that the API returns: what OCSF 1.7.0 and existing clients of the list require of the class API
// Activity, narrowed to the values that we write. Unknown attributes are rejected, as in OCSF. Used by the API document and
// by tests.
import { z } from '../../base/schema.ts';
import { activities } from './activity.ts';
import { enrichments } from './stored-record.ts';

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
/** The maximum length of an address in OCSF. */
export const maxAddress = 40;

const text = z.string().nullable();
const address = z.string().max(maxAddress);

const actor = z.strictObject({
  user: z.strictObject({
    uid: z.guid(),
    name: z.string().optional(),
    type: z.enum(['User', 'System', 'Service']),
    type_id: z.literal([1, 3, 4]),
    /** Null for a session, as the public contract has it. */
    credential_uid: text,
  }),
  app_name: z.string().optional(),
});

const endpoint = z.strictObject({
  ip: address,
  port: z.int().min(0).max(65_535),
  intermediate_ips: z.array(address),
  svc_name: z.string().optional(),
});

/** Everything that the log knows about an event; null for what it does not know. */
const nativeRecord = z.strictObject({
  id: z.guid(),
  operation_name: z.string(),
  operation_succeeded: z.boolean().nullable(),
  request_time: z.iso.datetime(),
  api_key_id: text,
  user_id: text,
  ls_user_id: text,
  organization_id: z.guid(),
  workspace_id: z.guid().nullable(),
  enrichments: enrichments
    .extend({
      request_method: z.string().optional(),
      request_path: z.string().optional(),
      resource_owner_ls_user_id: z.null(),
    })
    .nullable(),
});

/** `time` is in milliseconds since 1970. */
export const ocsfEventSchema = z.strictObject({
  class_uid: z.literal(classUid),
  class_name: z.literal('API Activity'),
  category_uid: z.literal(6),
  category_name: z.literal('Application Activity'),
  severity_id: z.literal(99),
  severity: z.literal('Other'),
  type_uid: z.literal(activities.map(({ id }) => classUid * 100 + id)),
  activity_id: z.literal(activities.map(({ id }) => id)),
  activity_name: z.literal(activities.map(({ name }) => name)),
  status_id: z.literal([0, 1, 2]),
  status: z.enum(['Unknown', 'Success', 'Failure']),
  time: z.int(),
  metadata: z.strictObject({
    version: z.literal('1.7.0'),
    uid: z.guid(),
    product: z.strictObject({ name: z.literal('Sallyport'), vendor_name: z.literal('Sallyport') }),
  }),
  api: z.strictObject({ operation: z.string() }),
  http_request: z.strictObject({
    uid: z.guid().optional(),
    http_method: z.enum(methods),
    url: z.strictObject({ path: z.string() }),
  }),
  http_response: z.strictObject({ code: z.int() }),
  actor,
  src_endpoint: endpoint,
  resources: z.array(z.strictObject({ uid: z.string(), name: z.string().optional() })),
  unmapped: z.strictObject({ original_audit_log: nativeRecord }),
});

export type OcsfEvent = z.infer<typeof ocsfEventSchema>;
