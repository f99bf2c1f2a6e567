// Issues as clients of such APIs know them: a path, a sentence, pydantic's name of the kind.
import { describe, expect, it } from 'vitest';
import { parseWith, toJsonSchema, withoutPrototype, z } from '../../src/base/schema.ts';

const schema = z.strictObject({
  name: z.string().min(2).max(4).optional(),
  count: z.int().min(1).max(9).default(1),
  on: z.boolean().optional(),
  level: z.enum(['low', 'high']).optional(),
  fixed: z.literal('x').optional(),
  list: z.array(z.string()).min(1).max(2).optional(),
  map: z.record(z.string(), z.string()).optional(),
  shape: z
    .discriminatedUnion(
      'kind',
      [z.strictObject({ kind: z.literal('a'), a: z.string() }), z.strictObject({ kind: z.literal('b') })],
      { error: 'Input must be a or b' },
    )
    .optional(),
  even: z
    .number()
    .refine((n) => n % 2 === 0, { error: 'Input must be even' })
    .optional(),
  code: z
    .string()
    .regex(/^[a-z]$/, { error: 'Input must be one letter' })
    .optional(),
  id: z.uuid().optional(),
  any_id: z.guid().optional(),
});

const rows: readonly [
  name: string,
  input: unknown,
  loc: readonly (string | number)[],
  type: string,
  msg: string,
][] = [
  ['no object', 5, [], 'dict_type', 'Input must be an object'],
  ['null', null, [], 'dict_type', 'Input must be an object'],
  ['nothing', undefined, [], 'missing', 'Field required'],
  ['an unknown key', { x: 1 }, ['x'], 'extra_forbidden', 'Unknown key: remove it, or correct its spelling'],
  ['a number for a string', { name: 1 }, ['name'], 'string_type', 'Input must be a string'],
  ['a short string', { name: 'a' }, ['name'], 'string_too_short', 'Input must have at least 2 characters'],
  ['a long string', { name: 'abcde' }, ['name'], 'string_too_long', 'Input must have at most 4 characters'],
  ['a string for a number', { count: '1' }, ['count'], 'int_type', 'Input must be a number'],
  ['a fraction', { count: 1.5 }, ['count'], 'int_type', 'Input must be a whole number'],
  ['too small a number', { count: 0 }, ['count'], 'greater_than_equal', 'Input must be at least 1'],
  ['too big a number', { count: 10 }, ['count'], 'less_than_equal', 'Input must be at most 9'],
  ['a string for a boolean', { on: 'true' }, ['on'], 'bool_type', 'Input must be true or false'],
  ['another word', { level: 'mid' }, ['level'], 'enum', "Input must be 'low' or 'high'"],
  ['another literal', { fixed: 'y' }, ['fixed'], 'enum', "Input must be 'x'"],
  ['an object for a list', { list: {} }, ['list'], 'list_type', 'Input must be a list'],
  ['an empty list', { list: [] }, ['list'], 'too_short', 'Input must have at least 1 entry'],
  ['a long list', { list: ['', '', ''] }, ['list'], 'too_long', 'Input must have at most 2 entries'],
  ['a wrong entry', { list: ['', 1] }, ['list', 1], 'string_type', 'Input must be a string'],
  ['a list for a map', { map: [] }, ['map'], 'dict_type', 'Input must be an object'],
  ['a wrong value in a map', { map: { k: 1 } }, ['map', 'k'], 'string_type', 'Input must be a string'],
  ['a union without its tag', { shape: {} }, ['shape', 'kind'], 'missing', 'Field required'],
  [
    'a union with another tag',
    { shape: { kind: 'c' } },
    ['shape', 'kind'],
    'union_tag_invalid',
    'Input must be a or b',
  ],
  [
    'a union of a wrong field',
    { shape: { kind: 'a', a: 1 } },
    ['shape', 'a'],
    'string_type',
    'Input must be a string',
  ],
  ['a check of our own', { even: 1 }, ['even'], 'value_error', 'Input must be even'],
  ['a pattern', { code: '1' }, ['code'], 'string_pattern_mismatch', 'Input must be one letter'],
  ['no UUID', { id: '1' }, ['id'], 'string_pattern_mismatch', 'Input must be a UUID'],
  ['no UUID of any variant', { any_id: '1' }, ['any_id'], 'string_pattern_mismatch', 'Input must be a UUID'],
];

describe('an issue', () => {
  it.each(rows)('%s', (_name, input, loc, type, msg) => {
    expect(parseWith(schema, input, ['body'])).toEqual({
      ok: false,
      issues: [{ loc: ['body', ...loc], msg, type }],
    });
  });
  it('is reported beside every other', () => {
    const parsed = parseWith(schema, { name: 1, list: [1, 2], x: 1, y: 2 });
    expect(parsed.ok ? [] : parsed.issues.map(({ loc }) => loc.join('.'))).toEqual([
      'name',
      'list.0',
      'list.1',
      'x',
      'y',
    ]);
  });
  it.each([
    ['matchHosts', 'matchHosts'],
    ['k'.repeat(32), 'k'.repeat(32)],
    ['ghp_canary0123456789012345678901234567', 'ghp_cana…'],
    ['k'.repeat(5000), 'kkkkkkkk…'],
  ])('holds of a key that is longer than names are the beginning: %s', (key, reported) => {
    const parsed = parseWith(schema, { [key]: 1, map: { [key]: 1 } });
    const locs = parsed.ok ? [] : parsed.issues.map(({ loc }) => loc.at(-1));
    expect(locs).toEqual([reported, reported]);
  });
});

describe('a value', () => {
  it('comes back with its defaults', () =>
    expect(parseWith(schema, { name: 'ab' })).toEqual({ ok: true, value: { name: 'ab', count: 1 } }));
});

describe('a JSON Schema', () => {
  it('describes what may be written: defaults are not required', () => {
    expect(toJsonSchema(schema)).toMatchObject({
      type: 'object',
      additionalProperties: false,
      properties: { count: { default: 1 } },
    });
    expect(toJsonSchema(schema)).not.toHaveProperty('required');
  });
});

describe('a record without __proto__', () => {
  const record = withoutPrototype(z.record(z.string(), z.string()));

  it('rejects a member of this name, which zod leaves out without a word', () => {
    const input: unknown = JSON.parse('{"a": "b", "__proto__": "c"}');
    expect(z.record(z.string(), z.string()).parse(input)).toEqual({ a: 'b' });
    expect(parseWith(record, input)).toMatchObject({
      ok: false,
      issues: [{ loc: ['__proto__'], type: 'value_error' }],
    });
  });

  it('accepts any other, and reports what the schema does', () => {
    expect(parseWith(record, { constructor: 'b' })).toEqual({ ok: true, value: { constructor: 'b' } });
    expect(parseWith(record, ['a'])).toMatchObject({ ok: false, issues: [{ type: 'dict_type' }] });
  });
});
