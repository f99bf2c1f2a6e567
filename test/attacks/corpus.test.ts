// Properties of the corpus as a whole.
import { describe, expect, it } from 'vitest';
import { attackClasses } from './attack-classes.ts';
import { corpus } from './corpus.ts';
import { classOf, fingerprint } from './row.ts';

const MIN_ROWS = 600;
const MIN_PER_CLASS = 5;

const rows = corpus.flatMap(({ stage, rows: own }) => own.map((row) => ({ ...row, stage })));
const twice = (values: readonly string[]): string[] =>
  values.filter((value, index) => values.indexOf(value) !== index);

describe('the corpus', () => {
  it(`has at least ${MIN_ROWS} rows`, () => expect(rows.length).toBeGreaterThanOrEqual(MIN_ROWS));

  it('has no two rows with the same bytes', () => {
    expect(twice(rows.map((row) => fingerprint(row.stage, row)))).toEqual([]);
  });

  it('has no two rows with the same name', () => expect(twice(rows.map(({ id }) => id))).toEqual([]));

  it('names only classes of the catalogue', () => {
    const known = new Set(attackClasses.map(({ id }) => id));
    expect(rows.filter((row) => !known.has(classOf(row))).map(({ id }) => id)).toEqual([]);
  });

  it(`has at least ${MIN_PER_CLASS} rows for each class that applies, and a reason for every other class`, () => {
    const short = attackClasses
      .map(({ id, absent }) => ({ id, absent, count: rows.filter((row) => classOf(row) === id).length }))
      .filter(({ absent, count }) => (absent === undefined ? count < MIN_PER_CLASS : count > 0));
    expect(short).toEqual([]);
  });
});
