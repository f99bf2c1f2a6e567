// Proxy profiles as callers write and read them.
import { NAME, NAME_PATTERN } from '../../base/json/printable-text.ts';
import { z } from '../../base/schema.ts';

// The length is checked before the pattern, which would block the event loop on a megabyte of text.
const name = z
  .string()
  .max(128, { abort: true })
  .trim()
  .min(1)
  .regex(NAME, 'Input must have no control characters')
  .meta({ pattern: NAME_PATTERN });

/** Read by the parser of the proxy, which reports its issues: a schema here would copy it. */
const document = z.unknown().meta({
  type: 'object',
  description: 'Rules, callbacks, no_proxy and access_control, as in docs/rules.md',
});

const isDefault = z
  .boolean()
  .describe('Sandboxes that name no profile use this one; the default before it is none any more');

export const newProfile = z.strictObject({
  name,
  proxy_config: document,
  is_default: isDefault.default(false),
});

/** Fields that are left out are not changed; a document is replaced as a whole. */
export const profileChange = z.strictObject({
  name: name.optional(),
  proxy_config: document.optional(),
  is_default: isDefault.optional(),
});

export const profileSummary = z
  .strictObject({
    id: z.uuid(),
    name: z.string(),
    is_default: z.boolean(),
    version: z.int().describe('Rises with each change of the document'),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'ProxyProfileSummary' });

export const profile = profileSummary
  .extend({
    proxy_config: z
      .record(z.string(), z.unknown())
      .describe(
        'Opaque headers have is_set in the place of their values, which are kept when this is sent back',
      ),
  })
  .meta({ id: 'ProxyProfile' });
