// Parses the document that changes workspace secrets; each value becomes a Secret here. Pure. No issue repeats a name or a
// value: a caller who swaps the two by mistake sends the value as a name.
import { type Issue, type Loc, type Parsed, toLocKey } from '../base/schema.ts';
import { Secret } from '../base/secret.ts';

/** null deletes. */
export type SecretChanges = ReadonlyMap<string, Secret | null>;

const MAX_CHANGES = 1000;
const MAX_VALUE_BYTES = 64 * 1024;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const NAME_RULE =
  'A name must consist of letters, digits and underscores, at most 128, and must not begin with a digit';

/** Reads `{"NAME": "value"}` or `[{"key": "NAME", "value": "value"}]`; null as a value deletes. */
export function parseSecretChanges(body: unknown): Parsed<SecretChanges> {
  if (typeof body !== 'object' || body === null)
    return fail({ loc: [], msg: 'Input should be an object or a list', type: 'dict_type' });
  const isList = Array.isArray(body);
  const given = isList ? body : Object.entries(body);
  if (given.length > MAX_CHANGES)
    return fail({ loc: [], msg: `Input should have at most ${MAX_CHANGES} entries`, type: 'too_long' });
  const issues: Issue[] = [];
  const changes = new Map<string, Secret | null>();
  for (const [index, entry] of given.entries()) {
    const read = isList ? readEntry(entry, index) : readMember(entry, index);
    if (!read.ok) issues.push(...read.issues);
    else if (changes.has(read.value.key))
      issues.push({ loc: [index, 'key'], msg: 'This key is repeated', type: 'value_error' });
    else changes.set(read.value.key, read.value.value);
  }
  return issues.length > 0 ? { ok: false, issues } : { ok: true, value: changes };
}

type Entry = { readonly key: string; readonly value: Secret | null };

function readMember([key, value]: readonly [string, unknown], index: number): Parsed<Entry> {
  // What is no valid name may be anything, a secret too: the issue gives its position instead.
  if (!NAME.test(key)) return fail({ loc: [index], msg: NAME_RULE, type: 'string_pattern_mismatch' });
  return readValue(key, value, [toLocKey(key)]);
}

function readEntry(entry: unknown, index: number): Parsed<Entry> {
  const loc: Loc = [index];
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
    return fail({ loc, msg: 'Input should be an object', type: 'dict_type' });
  const { key, value, ...rest } = entry as Readonly<Record<string, unknown>>;
  if (Object.keys(rest).length > 0)
    return fail({ loc, msg: 'An entry must have key and value and nothing else', type: 'extra_forbidden' });
  if (key === undefined) return fail({ loc: [...loc, 'key'], msg: 'Field required', type: 'missing' });
  if (typeof key !== 'string')
    return fail({ loc: [...loc, 'key'], msg: 'Input should be a string', type: 'string_type' });
  if (!NAME.test(key)) return fail({ loc: [...loc, 'key'], msg: NAME_RULE, type: 'string_pattern_mismatch' });
  return readValue(key, value, [...loc, 'value']);
}

function readValue(key: string, value: unknown, loc: Loc): Parsed<Entry> {
  if (value === null) return { ok: true, value: { key, value } };
  if (value === undefined) return fail({ loc, msg: 'Field required', type: 'missing' });
  if (typeof value !== 'string')
    return fail({ loc, msg: 'Input should be a string, or null to delete', type: 'string_type' });
  if (value === '')
    return fail({ loc, msg: 'Input must not be empty; null deletes', type: 'string_too_short' });
  if (Buffer.byteLength(value) > MAX_VALUE_BYTES)
    return fail({ loc, msg: `Input should have at most ${MAX_VALUE_BYTES} bytes`, type: 'string_too_long' });
  // A lone surrogate has no UTF-8 form: the value that is sent would differ from the one that was given.
  if (!value.isWellFormed())
    return fail({ loc, msg: 'Input should be valid Unicode', type: 'string_unicode' });
  return { ok: true, value: { key, value: new Secret(value) } };
}

function fail(issue: Issue): { readonly ok: false; readonly issues: readonly Issue[] } {
  return { ok: false, issues: [issue] };
}
