// Two changes that took the same number are found before they meet on one branch.
import { expect, it } from 'vitest';
import { readAllMigrations } from '../../src/platform/migrations.ts';

it('the migrations of all modules are numbered without a gap, each number once', () => {
  const numbers = readAllMigrations().map(({ id }) => id);
  expect(numbers).toEqual(numbers.map((_, at) => at + 1));
});
