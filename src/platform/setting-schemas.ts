// The forms that several settings of the platform have.
import { parseListenAddress } from '../base/listen-address.ts';
import { z } from '../base/schema.ts';

export const listenAddress = z.string().transform((text, context) => {
  const parsed = parseListenAddress(text);
  if (typeof parsed !== 'string') return parsed;
  context.addIssue({ code: 'custom', message: parsed });
  return z.NEVER;
});

const isOrigin = (pattern: RegExp) =>
  z
    .string()
    .refine((text) => pattern.test(text) && URL.canParse(text), 'must be https://host, without a path');
/** With TLS in front. */
export const publicUrl = isOrigin(/^https:\/\/[^/?#]+\/?$/);
export const gatewayUrl = isOrigin(/^https?:\/\/[^/?#]+\/?$/);

const DOMAIN = /^(?=.{1,200}$)(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.(?!$)|$))+$/;
export const domain = z.string().regex(DOMAIN, 'must be a domain such as boxes.example.com');

export const file = z.string().min(1);
export const limit = z.int().min(1).max(1_000_000_000);
