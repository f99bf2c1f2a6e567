// The cursor of a list that is read in pages by key: the place of the last item that was returned, valid only for the filters
// of its list. Opaque to clients. It grants nothing: whatever it holds, items are read by the filters of the request. Pure.
import { createHash } from 'node:crypto';
import { InvalidInput } from '../../base/domain-error.ts';
import { isObject } from '../../base/json/json-document.ts';
import { parseWith, type z } from '../../base/schema.ts';

/** Members by name; `scope` is not one of them. */
type Place = Readonly<Record<string, unknown>>;

const MAX_LENGTH = 512;

/** `filters` is whatever JSON tells one list from another. */
export function formatCursor(place: Place, filters: unknown): string {
  return encode({ scope: fingerprintOf(filters), ...place });
}

/** Undefined for a text that formatCursor did not create for these filters. */
export function parseCursor<T extends Place>(
  text: string,
  schema: z.ZodType<T>,
  filters: unknown,
): T | undefined {
  const content = text.length > MAX_LENGTH ? undefined : decode(text);
  if (!isObject(content)) return undefined;
  const { scope, ...place } = content;
  if (scope !== fingerprintOf(filters) || encode(content) !== text) return undefined;
  const parsed = parseWith(schema, place);
  return parsed.ok ? parsed.value : undefined;
}

export function invalidCursor(): InvalidInput {
  const msg = 'Invalid cursor: use the one from the previous page, with the same parameters';
  return new InvalidInput([{ loc: ['query', 'cursor'], msg, type: 'value_error' }]);
}

function encode(content: unknown): string {
  return Buffer.from(JSON.stringify(content)).toString('base64url');
}

function decode(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}

function fingerprintOf(filters: unknown): string {
  return createHash('sha256').update(JSON.stringify(filters)).digest('base64url').slice(0, 22);
}
