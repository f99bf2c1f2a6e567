// Variants of a valid value that differ in one place: both sides of its bounds, other types, missing and extra fields, and
// texts that often break parsers. The schema decides whether a variant is valid.
import * as fc from 'fast-check';
import { type JsonSchema, typesOf } from './json-schema.ts';
import { toRegExp, validValues } from './schema-values.ts';

export type Variant = {
  readonly what: string;
  /** The location of the change, as a dotted path. */
  readonly at: string;
  readonly value: unknown;
};

/** Part of every text that may be wrong: no rejection may repeat it. Longer than a name, because names are repeated. */
export const canary = 'zaunkoenig-4f1d0c77-zaunkoenig-0815';

/** A JSON number that no JavaScript value can represent as written. */
export function asWritten(text: string): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(text);
}

export function variantsOf(schema: JsonSchema, base: unknown): readonly Variant[] {
  return [...walk(schema, base, '', (value) => value)];
}

type Rebuild = (replacement: unknown) => unknown;

function* walk(schema: JsonSchema, value: unknown, at: string, rebuild: Rebuild): Generator<Variant> {
  for (const [what, replacement] of replacements(schema)) yield { what, at, value: rebuild(replacement) };
  if (isObject(value)) yield* walkObject(schema, value, at, rebuild);
  if (!Array.isArray(value) || value.length === 0) return;
  const [first, ...rest] = value as unknown[];
  const items = schema.items ?? branchOf(schema, 'array')?.items;
  if (items !== undefined && items !== false)
    yield* walk(items, first, `${at}.0`, (one) => rebuild([one, ...rest]));
}

function* walkObject(
  schema: JsonSchema,
  value: Readonly<Record<string, unknown>>,
  at: string,
  rebuild: Rebuild,
): Generator<Variant> {
  const { properties = {} } = branchOf(schema, 'object') ?? schema;
  for (const [name, own] of Object.entries(properties)) {
    const path = at === '' ? name : `${at}.${name}`;
    if (Object.hasOwn(value, name)) {
      const { [name]: _, ...rest } = value;
      yield { what: 'left out', at: path, value: rebuild(rest) };
    }
    yield* walk(own, value[name], path, (one) => rebuild({ ...value, [name]: one }));
  }
  for (const name of [
    `more_${canary}`,
    'constructor',
    'toString',
    'hasOwnProperty',
    '',
    '\0',
    '\ud800',
    '\u202e',
  ])
    yield {
      what: `has a field ${JSON.stringify(name).slice(0, 14)}`,
      at,
      value: rebuild({ ...value, [name]: canary }),
    };
  // As an own property, which only JSON.parse creates.
  const proto = Object.defineProperty({ ...value }, '__proto__', {
    value: { admin: true },
    enumerable: true,
  });
  yield { what: 'has a field __proto__', at, value: rebuild(proto) };
}

function branchOf({ anyOf, oneOf }: JsonSchema, type: string): JsonSchema | undefined {
  return (anyOf ?? oneOf)?.find((branch) => typesOf(branch).includes(type));
}

function* replacements(schema: JsonSchema): Generator<readonly [string, unknown]> {
  yield* OTHER_TYPES;
  const branches = schema.anyOf ?? schema.oneOf ?? [schema];
  for (const branch of branches) {
    const types = typesOf(branch);
    if (branch.enum !== undefined) yield* ofEnum(branch.enum);
    else if (types.includes('string')) yield* ofString(branch);
    if (types.includes('integer') || types.includes('number')) yield* ofNumber(branch);
    if (types.includes('array')) yield* ofList(branch);
    if (types.includes('object')) yield* ofMap(branch);
  }
}

const OTHER_TYPES: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['true', true],
  ['0', 0],
  ['a text', canary],
  ['an empty text', ''],
  ['an empty list', []],
  ['a list of lists', [[canary]]],
  ['an empty object', {}],
  ['an object', { [canary]: canary }],
  ['a number out of range', asWritten('1e400')],
];

function* ofEnum(values: readonly unknown[]): Generator<readonly [string, unknown]> {
  yield ['the first of the values', values[0]];
  yield ['the last of the values', values.at(-1)];
  yield [
    'one of the values in upper case',
    String(values[0]).toUpperCase() === values[0]
      ? String(values[0]).toLowerCase()
      : String(values[0]).toUpperCase(),
  ];
  yield ['one of the values and a space', `${String(values[0])} `];
}

const ODD: readonly (readonly [string, string])[] = [
  ['U+0000', `${canary}\0`],
  ['a high surrogate alone', `${canary}\ud800`],
  ['a low surrogate alone', `\udfff${canary}`],
  ['bidi controls', `\u202e${canary}\u2066`],
  ['line separators', `${canary}\u2028\u2029`],
  ['control characters', `${canary}\r\n\t\u001b[0m\u007f`],
  ['digits of another script', '١٢٣'],
  ['a combining character alone', '\u0301'],
  ['an SQL injection', `${canary}'; drop table listeners; --`],
  ['a template injection', `\${${canary}}{{7*7}}%s%n`],
  ['a prototype name', '__proto__'],
  ['NaN', 'NaN'],
  ['surrounded by spaces', ` ${canary} `],
];
const MAX_BUILT = 70_000;

function* ofString(schema: JsonSchema): Generator<readonly [string, unknown]> {
  yield* ODD;
  const { format, minLength, maxLength } = schema;
  if (format === 'uuid') yield* UUIDS;
  if (format === 'date-time') yield* TIMES;
  if (format === 'email') yield* EMAILS;
  for (const [what, length] of [
    ['one character too short', (minLength ?? 0) - 1],
    ['of the minimum length', minLength ?? 0],
    ['of the maximum length', maxLength ?? -1],
    ['one character too long', maxLength === undefined ? -1 : maxLength + 1],
    ['far too long', MAX_BUILT],
  ] as const) {
    const text = ofLength(length, schema);
    if (text !== undefined && length <= MAX_BUILT) yield [what, text];
  }
}

const UUIDS: readonly (readonly [string, string])[] = [
  ['the nil id', '00000000-0000-0000-0000-000000000000'],
  ['the max id', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
  ['an id in upper case', '0F0E0D0C-0B0A-4908-8706-050403020100'],
  ['an id in braces', '{0f0e0d0c-0b0a-4908-8706-050403020100}'],
  ['an id without hyphens', '0f0e0d0c0b0a49088706050403020100'],
  ['an id without a version', '0f0e0d0c-0b0a-0908-0706-050403020100'],
  ['an id with a suffix', `0f0e0d0c-0b0a-4908-8706-050403020100${canary}`],
];
const TIMES: readonly (readonly [string, string])[] = [
  ['the year 0', '0000-01-01T00:00:00Z'],
  ['the year 1', '0001-01-01T00:00:00Z'],
  ['the last moment', '9999-12-31T23:59:59.999999999Z'],
  ['a moment of the year 10000', '9999-12-31T23:59:59-23:59'],
  ['a moment before the year 0', '0000-01-01T00:00:00+23:59'],
  ['the past', '1970-01-01T00:00:00Z'],
  ['February the 30th', '2027-02-30T00:00:00Z'],
  ['a leap second', '2016-12-31T23:59:60Z'],
  ['a date alone', '2027-01-01'],
  ['no zone', '2027-01-01T00:00:00'],
  ['no seconds', '2027-01-01T00:00Z'],
  ['a hundred fractional digits', `2027-01-01T00:00:00.${'1'.repeat(100)}Z`],
  ['a year of six digits', '+275760-09-13T00:00:00Z'],
];
const EMAILS: readonly (readonly [string, string])[] = [
  ['two at signs', `a@b@${canary}.test`],
  ['capitals', 'Someone@Example.TEST'],
  ['a mail header injection', `a@${canary}.test\r\nBcc: b@c.test`],
  ['a long name', `${'a'.repeat(400)}@example.test`],
];

function ofLength(length: number, { pattern, format }: JsonSchema): string | undefined {
  if (length < 0 || format !== undefined) return undefined;
  if (pattern === undefined) return canary.repeat(Math.ceil(length / canary.length)).slice(0, length);
  const expression = toRegExp(pattern);
  const fillers = ['a', '0', 'A', '/', '-'].map((character) => character.repeat(length));
  return fillers.find((text) => expression.test(text)) ?? fillers[0];
}

function* ofNumber({ minimum, maximum, multipleOf }: JsonSchema): Generator<readonly [string, unknown]> {
  if (minimum !== undefined)
    yield* [
      ['the minimum', minimum],
      ['below the minimum', minimum - 1],
    ] as const;
  if (maximum !== undefined)
    yield* [
      ['the maximum', maximum],
      ['above the maximum', maximum + 1],
    ] as const;
  if (multipleOf !== undefined) yield ['no multiple', multipleOf + 1];
  for (const text of [
    '-0',
    '0.5',
    '1e2',
    '1E400',
    '-1e400',
    '9007199254740993',
    '9223372036854775808',
    '1e-400',
  ])
    yield [`the number ${text}`, asWritten(text)];
  for (const text of ['NaN', 'Infinity', '1', '0x10', '1_000', '١']) yield [`the text ${text}`, text];
}

/** Longer lists exceed the limit of the body. */
const MAX_ITEMS = 2000;

function* ofList({ items, minItems, maxItems }: JsonSchema): Generator<readonly [string, unknown]> {
  yield ['a list with null', [null]];
  if (items === undefined || items === false) return;
  for (const [what, count] of [
    ['one item too few', (minItems ?? 0) - 1],
    ['the minimum of items', minItems ?? 0],
    ['the maximum of items', maxItems ?? -1],
    ['one item too many', maxItems === undefined ? -1 : maxItems + 1],
  ] as const)
    if (count >= 0 && count <= MAX_ITEMS)
      yield [what, fc.sample(validValues(items), { numRuns: count, seed: 1 }).slice(0, count)];
}

function* ofMap({ maxProperties, additionalProperties }: JsonSchema): Generator<readonly [string, unknown]> {
  if (maxProperties === undefined || typeof additionalProperties !== 'object') return;
  for (const [what, count] of [
    ['the maximum of members', maxProperties],
    ['one member too many', maxProperties + 1],
  ] as const) {
    const [value] = fc.sample(validValues(additionalProperties), { numRuns: 1, seed: 1 });
    yield [what, Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, value]))];
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
