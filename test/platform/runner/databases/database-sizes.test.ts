// Databases are measured once in a while, and what cannot be measured changes nothing.
import { expect, it } from 'vitest';
import { watchDatabaseSizes } from '../../../../src/platform/runner/databases/database-sizes.ts';

it('what cannot be read changes nothing, and only what is watched is asked for', async () => {
  const asked: (readonly string[])[] = [];
  const warnings: unknown[] = [];
  const sizes = watchDatabaseSizes({
    async read(names) {
      asked.push(names);
      if (asked.length === 1) throw new Error('away');
      return new Map(names.map((name) => [name, 7]));
    },
    log: { warn: (...args: unknown[]) => void warnings.push(args) },
    intervalMs: 1,
  });
  const taken: number[] = [];
  const end = sizes.watch('one', (bytes) => void taken.push(bytes));
  await expect.poll(() => taken.length).toBeGreaterThan(1);
  end();
  expect([warnings.length, taken[0], asked[0]]).toEqual([1, 7, ['one']]);
});
