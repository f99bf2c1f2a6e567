// Random values that are valid by a schema: a JSON Schema in, an arbitrary of fast-check out.
import * as fc from 'fast-check';
import { type JsonSchema, typesOf } from './json-schema.ts';

/** Longer random texts and lists add time, not cases: their limits are among the variants. */
const MAX_TEXT = 40;
const MAX_LIST = 4;

export function validValues(schema: JsonSchema): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches !== undefined) return fc.oneof(...branches.map(validValues));
  if (schema.type === undefined) return fc.jsonValue({ maxDepth: 2 }).filter(isKeepable);
  return fc.oneof(...typesOf(schema).map((type) => ofType(type, schema)));
}

function ofType(type: string, schema: JsonSchema): fc.Arbitrary<unknown> {
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return integers(schema);
    case 'number':
      return fc.double({ min: schema.minimum ?? -1e6, max: schema.maximum ?? 1e6, noNaN: true });
    case 'string':
      return texts(schema);
    case 'array':
      return lists(schema);
    case 'object':
      return objects(schema);
    default:
      throw new Error(`unknown type ${type}`);
  }
}

function integers(schema: JsonSchema): fc.Arbitrary<number> {
  const { min, max } = range(schema);
  const { multipleOf: step = 1 } = schema;
  return fc.integer({ min: Math.ceil(min / step), max: Math.floor(max / step) }).map((at) => at * step);
}

function range({ minimum, maximum, exclusiveMinimum }: JsonSchema): { min: number; max: number } {
  const min = minimum ?? (exclusiveMinimum === undefined ? -1000 : exclusiveMinimum + 1);
  return { min: Math.max(min, -(2 ** 31)), max: Math.min(maximum ?? min + 1000, 2 ** 31 - 1) };
}

const DAY_MS = 86_400_000;
const FORMATS: Readonly<Record<string, () => fc.Arbitrary<string>>> = {
  uuid: () => fc.uuid({ version: 4 }),
  email: () =>
    fc.stringMatching(/^[a-z][a-z0-9+_-]{0,20}@[a-z](?:[a-z0-9-]{0,20}[a-z0-9])?\.(?:test|example)$/),
  // In the future: handlers compare some of these times with their clock.
  'date-time': () =>
    fc.integer({ min: 1, max: 300 }).map((days) => new Date(Date.now() + days * DAY_MS).toISOString()),
};

function texts(schema: JsonSchema): fc.Arbitrary<string> {
  const { format, pattern, minLength = 0, maxLength = Infinity } = schema;
  // Some fields trim white space, which no schema says.
  const fits = (text: string): boolean =>
    text.length >= minLength && text.length <= maxLength && text === text.trim() && isKeepable(text);
  if (format !== undefined) {
    const known = FORMATS[format];
    if (known === undefined) throw new Error(`unknown format ${format}`);
    return known().filter(fits);
  }
  const expression = toRegExp(pattern ?? '');
  // The Unicode classes of the patterns exclude little: most random texts match.
  if (pattern !== undefined && !pattern.includes('\\p{'))
    return fc.stringMatching(expression, { size: 'small' }).filter(fits);
  const maximum = Math.max(minLength, Math.min(maxLength, MAX_TEXT));
  return fc
    .oneof(
      { weight: 3, arbitrary: fc.string({ minLength, maxLength: maximum }) },
      // A character outside the BMP counts as two in JavaScript and as one in JSON Schema.
      { weight: 1, arbitrary: fc.string({ minLength, maxLength: maximum, unit: bmp }) },
    )
    .filter((text) => fits(text) && expression.test(text));
}

const bmp = fc.constantFrom(
  'ä',
  'ß',
  'é',
  '漢',
  '\u202e',
  '\u200b',
  '\ufeff',
  '\u0301',
  'İ',
  "'",
  '"',
  '\\',
  '%',
);

export function toRegExp(pattern: string): RegExp {
  return new RegExp(pattern, 'u');
}

function lists({ items, minItems = 0, maxItems = Infinity }: JsonSchema): fc.Arbitrary<unknown> {
  const maxLength = Math.max(minItems, Math.min(maxItems, MAX_LIST));
  return fc.array(items === undefined || items === false ? fc.constant('x') : validValues(items), {
    minLength: minItems,
    maxLength,
  });
}

function objects({
  properties = {},
  required = [],
  additionalProperties,
  propertyNames = {},
  maxProperties = Infinity,
}: JsonSchema): fc.Arbitrary<unknown> {
  const known = fc.record(
    Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, validValues(schema)])),
    { requiredKeys: [...required], noNullPrototype: true },
  );
  if (additionalProperties === undefined || additionalProperties === false) return known;
  const more = additionalProperties === true ? {} : additionalProperties;
  const names = toRegExp(propertyNames.pattern ?? '');
  const keys = fc
    .stringMatching(/^[a-z_]{1,12}$/)
    .filter((key) => !Object.hasOwn(properties, key) && names.test(key));
  const maxKeys = Math.min(3, maxProperties);
  return fc
    .tuple(known, fc.dictionary(keys, validValues(more), { maxKeys, noNullPrototype: true }))
    .map(([first, second]) => ({ ...second, ...(first as object) }));
}

/** PostgreSQL can store neither U+0000 nor an unpaired surrogate, which no schema says. */
function isKeepable(value: unknown): boolean {
  const text = JSON.stringify(value);
  return !/\\u0000|\\ud[89a-f]/i.test(text);
}
