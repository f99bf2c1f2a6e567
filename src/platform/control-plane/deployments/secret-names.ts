// The secrets of a deployment as callers write them, by names that are not the platform's own.
import { z } from '../../../base/schema.ts';
import { isReservedVariable } from '../../../base/variables/reserved-variables.ts';

const MALFORMED = 'The name of a secret must be that of a variable: letters, digits and underscores';
const IS_RESERVED = 'This name is reserved: the platform sets it';

const name = z
  .string()
  .max(256, { abort: true })
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: MALFORMED, abort: true })
  .refine((text) => !isReservedVariable(text), IS_RESERVED);

const MAX_SECRETS = 200;

/** An empty value keeps the stored one. */
export const newSecrets = z
  .array(z.object({ name, value: z.string().max(65_536).nullable().optional() }))
  .max(MAX_SECRETS)
  .superRefine(requireDistinct);

/** For images: where their cluster finds the value. */
export const secretReferences = z
  .array(z.object({ name, secret_name: z.string().min(1).max(253), secret_key: z.string().min(1).max(253) }))
  .max(MAX_SECRETS)
  .superRefine(requireDistinct);

function requireDistinct(all: readonly { readonly name: string }[], context: z.RefinementCtx): void {
  const seen = new Set<string>();
  for (const [at, one] of all.entries()) {
    if (seen.has(one.name))
      context.addIssue({ code: 'custom', path: [at, 'name'], message: 'This name is repeated' });
    seen.add(one.name);
  }
}
