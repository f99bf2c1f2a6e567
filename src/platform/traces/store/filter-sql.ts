// A filter as a condition in SQL on the row of a run. Every value is a bound parameter. A comparison with null is null there, which
// counts as false: `not` makes it true, and nothing else inverts.
import { sql } from '../../store/sql.ts';
import { findField, type JsonColumn, type ScalarColumn, SEARCHED } from '../filter/fields.ts';
import type { Filter } from '../filter/filter.ts';
import type { Test } from '../filter/value-test.ts';
import type { Value } from '../filter/values.ts';
import { deriveValues, MAX_TEXT, storable } from '../runs/run-derivation.ts';
import { formatMicros } from '../runs/run-time.ts';
import { compileSome } from './pair-sql.ts';
import { compileTest, type Condition, contains, type SqlType } from './test-sql.ts';

/** `run` is the alias of the table. */
export function compileFilter(filter: Filter, run: string): Condition {
  switch (filter.kind) {
    case 'all':
    case 'any':
      return joined(
        filter.filters.map((one) => compileFilter(one, run)),
        filter.kind,
      );
    case 'not':
      return sql<boolean>`(${compileFilter(filter.filter, run)}) is not true`;
    case 'column':
      return compileColumn(filter.column, filter.test, run);
    case 'tag':
      return compileTag(filter, run);
    case 'absent':
      return isAbsent(filter.column, run);
    case 'metadata':
      return sql<boolean>`${sql.ref(`${run}.metadata`)} @> ${toStoredMetadata(filter.contained)}::jsonb`;
    case 'json':
      return compileJson(filter.column, filter.text, run);
    case 'some':
      return compileSome(filter.family, filter.tests, run);
    case 'search':
      return compileSearch(filter.text, run);
  }
}

function joined(conditions: readonly Condition[], kind: 'all' | 'any'): Condition {
  if (conditions.length === 0) return sql<boolean>`${sql.lit(kind === 'all')}`;
  const operator = kind === 'all' ? sql` and ` : sql` or `;
  return sql<boolean>`(${sql.join(conditions, operator)})`;
}

const TYPES: Readonly<Record<string, SqlType>> = {
  ...{ text: 'text', uuid: 'uuid', flag: 'boolean', time: 'timestamptz' },
  ...{ number: 'numeric', duration: 'numeric' },
};

function compileColumn(column: ScalarColumn, test: Test, run: string): Condition {
  const field = findField(column);
  const type = field?.kind === 'column' ? TYPES[field.values] : undefined;
  if (type === undefined) throw new Error(`the column ${column} has no type`);
  return compileTest(sql.ref(`${run}.${column}`), test, { type, toParameter });
}

function toParameter(value: Value): string | boolean {
  switch (value.type) {
    case 'text':
      return storable(value.text);
    case 'number':
      return value.decimal;
    case 'flag':
      return value.flag;
    case 'time':
      return formatMicros(value.micros);
  }
}

function compileTag({ is, text }: Extract<Filter, { readonly kind: 'tag' }>, run: string): Condition {
  const tags = sql.ref(`${run}.tags`);
  if (is === 'equal') return sql<boolean>`${storable(text)}::text = any(${tags})`;
  return sql<boolean>`exists (select from unnest(${tags}) tag where ${contains(sql.ref('tag'), text)})`;
}

/** JSON null, and metadata without members, say as much as nothing. */
function isAbsent(column: JsonColumn, run: string): Condition {
  if (column === 'metadata') return sql<boolean>`${sql.ref(`${run}.metadata`)} = '{}'`;
  const json = sql.ref(`${run}.${column}_json`);
  return sql<boolean>`(${json} is null or ${json} = 'null')`;
}

function compileJson(column: JsonColumn, text: string, run: string): Condition {
  const json =
    column === 'metadata'
      ? sql`left(${sql.ref(`${run}.metadata`)}::text, ${sql.lit(MAX_TEXT)})`
      : sql.ref(`${run}.${column}_text`);
  const written = JSON.stringify(storable(text)).slice(1, -1);
  const found = [...new Set([text, written])].map((one) => contains(json, one));
  return sql<boolean>`(not ${isAbsent(column, run)} and ${joined(found, 'any')})`;
}

function compileSearch(text: string, run: string): Condition {
  const columns = SEARCHED.columns.map((column) => contains(sql.ref(`${run}.${column}`), text));
  const json = SEARCHED.json.map((column) => compileJson(column, text, run));
  return joined([...columns, ...json, compileTag({ kind: 'tag', is: 'containing', text }, run)], 'any');
}

/** What would be stored of this metadata: texts are storable, numbers those of JSON.parse. */
function toStoredMetadata(contained: string): string {
  const { metadata } = deriveValues('extra', { metadata: JSON.parse(contained) });
  return JSON.stringify(metadata);
}
