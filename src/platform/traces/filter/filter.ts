// What a filter of runs means, independent of any database: a tree of conditions, each of which a run fulfils or not. There is no
// third value: a run without a value fulfils no condition on it except `equal` to null, and `unequal` to all else.
//
// Texts are compared as they are, upper and lower case apart, with U+0000 as U+FFFD. JSON that is searched is that of the whole
// field; a text is found in it as it is or as JSON writes it. Pairs are the members of the metadata, the values within inputs
// and outputs with their paths, and feedback. The value of a pair is a text: a number or a truth value as JSON writes it, nothing
// for null, an object or a list. A number is compared with texts that are JSON numbers.
import type { Family, JsonColumn, ScalarColumn } from './fields.ts';
import type { PartTest, Test } from './value-test.ts';

export type Filter =
  | { readonly kind: 'all' | 'any'; readonly filters: readonly Filter[] }
  | { readonly kind: 'not'; readonly filter: Filter }
  | { readonly kind: 'column'; readonly column: ScalarColumn; readonly test: Test }
  /** One of the tags is the text, or contains it. */
  | { readonly kind: 'tag'; readonly is: 'equal' | 'containing'; readonly text: string }
  /** The JSON of a column is absent. */
  | { readonly kind: 'absent'; readonly column: JsonColumn }
  /** The metadata contains the object: each of its members, in any depth. */
  | { readonly kind: 'metadata'; readonly contained: string }
  /** The JSON contains the text. */
  | { readonly kind: 'json'; readonly column: JsonColumn; readonly text: string }
  /** There is one of the family that passes all tests. */
  | { readonly kind: 'some'; readonly family: Family; readonly tests: readonly PartTest[] }
  /** One of the searched fields contains the text. */
  | { readonly kind: 'search'; readonly text: string };

/** All of the filters. */
export function toFilter(filters: readonly Filter[]): Filter {
  const [only] = filters;
  return only !== undefined && filters.length === 1 ? only : { kind: 'all', filters };
}
