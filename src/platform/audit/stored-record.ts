// What is kept of an event as JSON text; the rest of it has columns. Pure.
import { z } from '../../base/schema.ts';

export type StoredRecord = {
  readonly operation_succeeded: boolean;
  readonly api_key_id: string | null;
  readonly user_id: string | null;
  readonly enrichments: {
    readonly request_method: string | null;
    readonly request_path: string | null;
    readonly client_host: string | null;
    readonly client_port: number | null;
    readonly x_forwarded_for: string | null;
    readonly response_status_code: number | null;
    readonly resource_ids: readonly string[];
  };
};

const text = z.string().nullable();

export const enrichments: z.ZodType<StoredRecord['enrichments']> = z.strictObject({
  request_method: text,
  request_path: text,
  client_host: text,
  client_port: z.int().nullable(),
  x_forwarded_for: text,
  response_status_code: z.int().nullable(),
  resource_ids: z.array(z.string()),
});

const schema: z.ZodType<StoredRecord> = z.strictObject({
  operation_succeeded: z.boolean(),
  api_key_id: text,
  user_id: text,
  enrichments,
});

/** Undefined for a text that is no record: somebody has written past the journal. */
export function parseStoredRecord(json: string): StoredRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  return schema.safeParse(value).data;
}
