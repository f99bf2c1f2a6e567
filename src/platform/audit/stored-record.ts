// The part of an event that is stored as JSON text; the rest of it has columns. Pure.
import { z } from '../../base/schema.ts';
import { readJson } from './json-text.ts';

const text = z.string().nullable();

export const enrichments = z.strictObject({
  request_method: text,
  request_path: text,
  client_host: text,
  client_port: z.int().nullable(),
  x_forwarded_for: text,
  response_status_code: z.int().nullable(),
  resource_ids: z.array(z.string()),
  /** Of the resources in their order, where callers name them; absent where ids are all there is. */
  resource_names: z.array(z.string()).optional(),
  /** The key with which somebody else created the personal token that was used; absent for every other key. */
  credential_issued_by: z.string().optional(),
  /** Of a caller with a session: the session, and the key that began it. */
  session_id: z.string().optional(),
  session_key_id: z.string().optional(),
  /** The X-Request-Id of the response, which the line in the log has too; absent when it is not a UUID. */
  request_id: z.string().optional(),
  /** How many failed requests the event stands for; absent for one. */
  request_count: z.int().optional(),
});

const schema = z.strictObject({
  operation_succeeded: z.boolean(),
  api_key_id: text,
  user_id: text,
  enrichments,
});

export type StoredRecord = z.infer<typeof schema>;

/** Undefined for a text that is not a record: it was not written by the journal. */
export function parseStoredRecord(json: string): StoredRecord | undefined {
  return schema.safeParse(readJson(json)).data;
}
