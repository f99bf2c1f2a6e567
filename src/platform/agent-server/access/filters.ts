// What an authorization handler lets a caller see: conditions on the metadata of assistants and threads, which every statement
// about them has. A filter that is not understood as a whole is refused: to ignore a part of it would show more.
import { isDeepStrictEqual } from 'node:util';
import { isStorable, pathToUnstorable } from '../../../base/json/storable-text.ts';
import { sql } from '../../store/sql.ts';

export type Filter = readonly Condition[];

type Condition = {
  readonly key: string;
  /** `contains`: the array under the key has all of the values. */
  readonly operator: 'equals' | 'contains';
  readonly value: unknown;
};

/** What is wrong with a filter. The message names operators and never a key or a value. */
export class FilterError extends Error {
  override readonly name: string = 'FilterError';
}

const MAX_CONDITIONS = 100;
const MAX_LENGTH = 64 * 1024;

/**
 * `{key: value | {$eq: value} | {$contains: value}}`, as it came out of JSON; every condition must hold. Undefined: without
 * conditions, so that everything is visible. Throws a FilterError.
 */
export function compileFilter(given: unknown): Filter | undefined {
  if (!isObject(given)) throw new FilterError('is no object');
  const filter = Object.entries(given).flatMap(([key, value]) => conditionsOf(key, value));
  if (filter.length > MAX_CONDITIONS) throw new FilterError(`has more than ${MAX_CONDITIONS} conditions`);
  if (JSON.stringify(given).length > MAX_LENGTH)
    throw new FilterError(`has more than ${MAX_LENGTH} characters`);
  return filter.length === 0 ? undefined : filter;
}

function conditionsOf(key: string, value: unknown): readonly Condition[] {
  if (key.startsWith('$'))
    throw new FilterError('has an operator in the place of a key: conditions on keys are all that there is');
  if (!isStorable(key) || pathToUnstorable(value) !== undefined)
    throw new FilterError('has a text with U+0000 or half of a surrogate pair, which no metadata can have');
  const operators = isObject(value) ? Object.keys(value).filter((name) => name.startsWith('$')) : [];
  if (!isObject(value) || operators.length === 0) return [{ key, operator: 'equals', value }];
  if (operators.length < Object.keys(value).length)
    throw new FilterError('has operators and other names in one condition');
  return operators.map((name) => ({ key, operator: operatorOf(name), value: value[name] }));
}

function operatorOf(name: string): Condition['operator'] {
  if (name === '$eq') return 'equals';
  if (name === '$contains') return 'contains';
  throw new FilterError('has an operator other than $eq and $contains');
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** For `where`: true for a row whose metadata fulfils the filter. `column` is jsonb, with its table where that is ambiguous. */
export function whereVisible(filter: Filter | undefined, column = 'metadata') {
  if (filter === undefined || filter.length === 0) return sql<boolean>`true`;
  const conditions = filter.map((condition) => toSql(column, condition));
  return sql<boolean>`(${sql.join(conditions, sql` and `)})`;
}

/** Of what both show. */
export function bothOf(one: Filter | undefined, other: Filter | undefined): Filter | undefined {
  return one === undefined ? other : [...one, ...(other ?? [])];
}

/** A key of metadata that is to be stored and has another value than the filter wants: a caller would write what is not theirs. */
export function findForeign(filter: Filter | undefined, metadata: unknown): string | undefined {
  if (!isObject(metadata)) return undefined;
  const foreign = filter?.find(
    ({ key, operator, value }) =>
      operator === 'equals' && Object.hasOwn(metadata, key) && !isDeepStrictEqual(metadata[key], value),
  );
  return foreign?.key;
}

/** Containment has an index, and is not exact: `{"a": 1, "b": 2}` contains `{"a": 1}`. */
function toSql(column: string, { key, operator, value }: Condition) {
  const metadata = sql.ref(column);
  const contains = (wanted: unknown) =>
    sql<boolean>`${metadata} @> ${JSON.stringify({ [key]: wanted })}::jsonb`;
  const found = sql`${metadata} -> ${key}::text`;
  if (operator === 'equals')
    return sql<boolean>`${contains(value)} and ${found} is not distinct from ${JSON.stringify(value)}::jsonb`;
  const members: readonly unknown[] = Array.isArray(value) ? value : [value];
  const structured = members.filter((member) => typeof member === 'object' && member !== null);
  const exact = structured.map(
    (member) => sql<boolean>`exists (
      select from jsonb_array_elements(case jsonb_typeof(${found}) when 'array' then ${found} else '[]' end) as one
      where one.value = ${JSON.stringify(member)}::jsonb)`,
  );
  return sql<boolean>`${sql.join([contains(members), ...exact], sql` and `)}`;
}
