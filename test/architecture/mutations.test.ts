// Each mutation must still be one: its text stands in its file exactly once, and every invariant has its share.
// Whether the tests see them is asked by `npm run mutants`, which takes minutes.
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { invariantTests, mutations } from '../../scripts/mutations.ts';
import { type Invariant, bothVersions } from '../../scripts/mutations/mutation.ts';

const invariants = Object.keys(invariantTests) as Invariant[];
const suites = invariants.flatMap((invariant) =>
  bothVersions.map((version) => [invariant, version] as const),
);

describe('the mutations', () => {
  it.each(mutations.map((mutation) => [mutation.invariant, mutation.name, mutation] as const))(
    '%s: %s: its text stands in its file exactly once',
    (_, __, { file, text, replacement }) => {
      expect(readFileSync(file, 'utf8').split(text)).toHaveLength(2);
      expect(replacement).not.toBe(text);
    },
  );

  it.each(suites)('%s over %s has at least three, each with a name of its own', (invariant, version) => {
    const own = mutations.filter((mutation) => mutation.invariant === invariant);
    const seen = own.filter(({ versions = ['h1'] }) => versions.includes(version)).map(({ name }) => name);
    expect(seen.length).toBeGreaterThanOrEqual(3);
    expect(new Set(seen).size).toBe(seen.length);
  });

  it.each(suites)('%s over %s has test files whose tests bear its name', (invariant, version) => {
    for (const file of invariantTests[invariant][version]) {
      expect(existsSync(file)).toBe(true);
      const titles = [
        ...readFileSync(file, 'utf8').matchAll(/\b(?:describe|it(?:\.each\([^']*\))?)\(\s*['"`](\S+) /g),
      ];
      expect(titles.length).toBeGreaterThan(5);
      expect(titles.map(([, first]) => first).filter((first) => first !== invariant)).toEqual([]);
    }
  });
});
