// The conditions of one `and` on keys and values of metadata, inputs, outputs or feedback: together they are about one pair.
//
//   and(eq(metadata_key, "a"), eq(metadata_value, "1"))     a pair has that key and that value
//   and(eq(metadata_key, "a"), neq(metadata_value, "1"))    that key has another value
//   and(neq(metadata_key, "a"), neq(metadata_value, "1"))   no pair has that key, and none that value
//
// Pure.
import type { Filter } from './filter.ts';
import type { Family } from './fields.ts';
import type { PartTest, Test } from './value-test.ts';
import type { FilterIssue } from './tokens.ts';

/** A condition on a part, at its position. */
export type PartCondition = PartTest & {
  readonly kind: 'part';
  readonly family: Family;
  readonly at: number;
};

export function combineParts(conditions: readonly PartCondition[]): readonly Filter[] {
  const families = Map.groupBy(conditions, ({ family }) => family);
  return [...families].flatMap(([family, tests]) => {
    const bare = tests.map(({ part, test }): PartTest => ({ part, test }));
    if (!bare.every(({ test }) => isDenial(test))) return [{ kind: 'some', family, tests: bare } as const];
    return bare.map(({ part, test }) => noneOf(family, { part, test: { ...test, is: 'equal' } as Test }));
  });
}

/** A pair has one key, so that these conditions could never hold. The author wants two pairs. */
export function findSecondKeys(conditions: readonly PartCondition[]): readonly FilterIssue[] {
  const keys = new Map<Family, string>();
  return conditions.flatMap(({ family, part, test, at }) => {
    if (part !== 'key' || test.is !== 'equal' || test.value?.type !== 'text') return [];
    const first = keys.get(family) ?? test.value.text;
    keys.set(family, first);
    if (first === test.value.text) return [];
    return [{ at, msg: 'A pair has one key: give each pair an `and` of its own within this one' }];
  });
}

/** `neq` of null asks for a pair that has a value. */
function isDenial(test: Test): boolean {
  return test.is === 'unequal' && test.value !== null;
}

function noneOf(family: Family, test: PartTest): Filter {
  return { kind: 'not', filter: { kind: 'some', family, tests: [test] } };
}
