// The conditions of a filter on pairs of metadata, inputs, outputs and on feedback, as conditions in SQL.
import { sql } from '../../store/sql.ts';
import type { Family } from '../filter/fields.ts';
import type { PartTest, Test } from '../filter/value-test.ts';
import type { Value } from '../filter/values.ts';
import { storable } from '../runs/run-derivation.ts';
import { compileTest, type Condition, type Operand } from './test-sql.ts';

/** The run has one of the family that passes all tests. */
export function compileSome(family: Family, tests: readonly PartTest[], run: string): Condition {
  const conditions = sql.join(
    tests.map((one) => compilePart(one)),
    sql` and `,
  );
  if (family === 'feedback')
    return sql<boolean>`exists (
      select from trace_feedback pair
      where pair.workspace_id = ${sql.ref(`${run}.workspace_id`)} and pair.run_id = ${sql.ref(`${run}.id`)} and ${conditions})`;
  return sql<boolean>`exists (select from jsonb_each(${pairsOf(family, run)}) pair where ${conditions})`;
}

function pairsOf(family: Exclude<Family, 'feedback'>, run: string): Operand {
  return sql.ref(`${run}.${family === 'metadata' ? 'metadata' : `${family}s_pairs`}`);
}

function compilePart({ part, test }: PartTest): Condition {
  switch (part) {
    case 'key':
      return compileTest(sql.ref('pair.key'), test, { type: 'text', toParameter: toText });
    case 'source':
      return compileTest(sql`pair.feedback_source ->> 'type'`, test, { type: 'text', toParameter: toText });
    case 'score':
      // As JavaScript reads it: the database refuses numbers that are too large.
      return compileTest(sql.ref('pair.score'), test, {
        type: 'float8',
        toParameter: (value) => String(Number(toText(value))),
      });
    case 'value':
      return compileValue(test);
  }
}

/** Of objects and lists there is none. */
const TEXT = sql`(case when jsonb_typeof(pair.value) in ('string', 'number', 'boolean') then pair.value #>> '{}' end)`;
/** A number of JSON; a longer one than any that a run has is a text. */
const NUMBER = sql`(case when length(${TEXT}) <= 800 and ${TEXT} ~ '^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$'
  then (${TEXT})::numeric end)`;

const asText = { type: 'text', toParameter: toText } as const;
const asNumber = { type: 'numeric', toParameter: toText } as const;

function compileValue(test: Test): Condition {
  if (test.is === 'containing') return compileTest(TEXT, test, asText);
  if (test.is === 'among') {
    const isNumber = (value: Value): boolean => value.type === 'number';
    const numbers = { ...test, values: test.values.filter(isNumber) };
    const texts = { ...test, values: test.values.filter((value) => !isNumber(value)) };
    return sql<boolean>`(${compileTest(TEXT, texts, asText)} or ${compileTest(NUMBER, numbers, asNumber)})`;
  }
  return test.value?.type === 'number'
    ? compileTest(NUMBER, test, asNumber)
    : compileTest(TEXT, test, asText);
}

/** A truth value as JSON writes it. */
function toText(value: Value): string {
  switch (value.type) {
    case 'text':
      return storable(value.text);
    case 'number':
      return value.decimal;
    case 'flag':
      return String(value.flag);
    case 'time':
      throw new Error('no part of a pair is a time');
  }
}
