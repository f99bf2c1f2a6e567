// P-15: paths of 8 KiB that make matchers backtrack, against the most expensive accepted patterns. The work grows linearly
// with the path, never quadratically.
import type { AttackRow } from '../row.ts';

export type WorkScript = {
  /** The patterns of one rule for `api.test`. */
  readonly match_paths: readonly string[];
  /** A pair is a piece and its number of repetitions. */
  readonly path: readonly (string | readonly [piece: string, count: number])[];
};
export type WorkExpectation = {
  readonly decision: string;
  /** The maximum of examined characters for each character of the path. */
  readonly perCharacter: number;
};
export type WorkRow = AttackRow<WorkScript, WorkExpectation>;

const row = (
  name: string,
  match_paths: readonly string[],
  path: WorkScript['path'],
  decision: string,
  perCharacter = 40,
): WorkRow => ({
  id: `P-15 work-${name}`,
  script: { match_paths, path },
  expect: { decision, perCharacter },
});
const NONE = 'intercept none';
const RULE = 'intercept rule';

export const workRows: readonly WorkRow[] = [
  row('eight-stars-and-no-end', ['/a*a*a*a*a*a*a*a*b'], ['/', ['a', 8_190]], NONE),
  row('eight-stars-and-an-end', ['/a*a*a*a*a*a*a*a*b'], ['/', ['a', 8_189], 'b'], RULE),
  row('stars-between-pairs', ['/*ab*ab*ab*ab*ab*ab*ac'], ['/', ['ab', 4_095]], NONE),
  row('a-long-literal-that-nearly-fits', [`/*${'a'.repeat(200)}b*c`], ['/', ['a', 8_190]], NONE),
  row('a-star-a-segment', ['/*/*/*/*/*/*/*/x'], [['/a', 4_095]], NONE),
  row('empty-segments', ['/*/x/*/x'], [['/', 8_191]], NONE),
  row('encoded-letters', ['/a*a*a*a*b'], ['/', ['%61', 2_730]], NONE),
  row('encoded-capitals-and-plain', ['/*A*B*C*'], ['/', ['%41b', 2_040]], NONE),
  row('nested-escapes', ['/v1/*'], ['/v1/', ['%2525', 1_600]], RULE, 80),
  row('parameters', ['/v1/*'], ['/v1/', [';a', 4_000]], RULE, 80),
  row('literal-parentheses', ['/(a+)+$'], ['/', ['a', 8_190]], NONE),
  row(
    'ten-that-search',
    Array.from({ length: 10 }, (_, i) => `/*${i}*${i}`),
    ['/', ['a', 8_190]],
    NONE,
    200,
  ),
  row(
    'a-hundred-that-compare',
    Array.from({ length: 100 }, (_, i) => `/${'a'.repeat(200)}${i}/*`),
    ['/', ['a', 8_190]],
    NONE,
    40,
  ),
];
