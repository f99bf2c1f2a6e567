// The test of one value of a filter as a condition in SQL, on an expression of one type.
import { sql } from '../../store/sql.ts';
import type { Order, Test } from '../filter/value-test.ts';
import type { Value } from '../filter/values.ts';
import { storable } from '../runs/run-derivation.ts';

export type Condition = ReturnType<typeof sql<boolean>>;
/** A column or an expression. */
export type Operand = ReturnType<typeof sql<unknown>>;

export type SqlType = 'text' | 'uuid' | 'boolean' | 'timestamptz' | 'numeric' | 'float8';

type Typed = {
  readonly type: SqlType;
  toParameter(value: Value): string | boolean;
};

const OPERATORS: Readonly<Record<Order, ReturnType<typeof sql>>> = {
  ...{ less: sql`<`, at_most: sql`<=`, more: sql`>`, at_least: sql`>=` },
};

export function compileTest(operand: Operand, test: Test, { type, toParameter }: Typed): Condition {
  const cast = sql.raw(type);
  const bound = (value: Value): Operand => sql`${toParameter(value)}::${cast}`;
  switch (test.is) {
    case 'equal':
      return test.value === null
        ? sql<boolean>`${operand} is null`
        : sql<boolean>`${operand} = ${bound(test.value)}`;
    case 'unequal':
      return test.value === null
        ? sql<boolean>`${operand} is not null`
        : sql<boolean>`${operand} is distinct from ${bound(test.value)}`;
    case 'among':
      return sql<boolean>`${operand} = any(${test.values.map(toParameter)}::${cast}[])`;
    case 'containing':
      return contains(operand, test.text);
    default:
      return sql<boolean>`${ordered(operand, type)} ${OPERATORS[test.is]} ${bound(test.value)}`;
  }
}

/** By code points, whatever the collation of the database. */
export function ordered(operand: Operand, type: SqlType): Operand {
  return type === 'text' ? sql`${operand} collate "C"` : operand;
}

/** Without wildcards, which LIKE has. */
export function contains(operand: Operand, text: string): Condition {
  return sql<boolean>`strpos(${operand}, ${storable(text)}) > 0`;
}
