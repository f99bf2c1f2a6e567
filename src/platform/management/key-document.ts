// Keys as documents: what a caller writes for a new one, and what he reads of one.
import { z } from '../../base/schema.ts';
import type { Outcome } from '../api/route.ts';
import { displayName, expiry, time } from './fields.ts';
import type { CreatedKey, Key } from './keys.ts';

export type KeyDocument = {
  readonly id: string;
  readonly short_key: string;
  readonly description: string;
  readonly role: string | null;
  readonly workspace_id: string | null;
  readonly user_id: string | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
};

const shape = {
  id: z.uuid(),
  short_key: z.string(),
  description: z.string(),
  role: z.string().nullable(),
  workspace_id: z.uuid().nullable(),
  user_id: z.uuid().nullable(),
  created_at: time,
  expires_at: time.nullable(),
  last_used_at: time.nullable(),
};

export const keyDocument: z.ZodType<KeyDocument> = z.strictObject(shape).meta({ id: 'ApiKey' });

/** The key itself is in no other answer. */
export const createdKeyDocument: z.ZodType<KeyDocument & { readonly key: string }> = z
  .strictObject({ ...shape, key: z.string() })
  .meta({ id: 'CreatedApiKey' });

type Described = z.ZodDefault<z.ZodString>;
type Ending = z.ZodDefault<z.ZodNullable<z.ZodISODateTime>>;
type NewToken = { description: Described; expires_at: Ending };

const described: Described = displayName.default('API key');
const ending: Ending = expiry.nullable().default(null);

export const newPersonalToken: z.ZodObject<NewToken, z.core.$strict> = z.strictObject({
  description: described,
  expires_at: ending,
});

/** `role` is the schema of the roles that such a key may have. */
export function newServiceKey<R extends z.ZodType>(
  role: R,
): z.ZodObject<NewToken & { role: R }, z.core.$strict> {
  return z.strictObject({ description: described, expires_at: ending, role });
}

export function toDocument(key: Key): KeyDocument {
  return {
    id: key.id,
    short_key: key.short_key,
    description: key.description,
    role: key.role,
    workspace_id: key.workspace_id,
    user_id: key.user_id,
    created_at: key.created_at.toISOString(),
    expires_at: key.expires_at?.toISOString() ?? null,
    last_used_at: key.last_used_at?.toISOString() ?? null,
  };
}

/** An answer that holds a key is kept by no cache. */
export function shownOnce({ text, ...key }: CreatedKey): Outcome {
  const resources = key.user_id === null ? [key.id] : [key.id, key.user_id];
  return { body: { ...toDocument(key), key: text }, resources, fields: { 'Cache-Control': 'no-store' } };
}

export function toDate(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
