// Each mutation must still be one: its text stands in its file exactly once, and every invariant has its share.
// Whether the tests see them is asked by `npm run mutants`, which takes minutes.
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { invariantTests, mutations } from '../../scripts/mutations.ts';
import type { Invariant } from '../../scripts/mutations/mutation.ts';

const invariants = Object.keys(invariantTests) as Invariant[];

describe('the mutations', () => {
  it.each(mutations.map((mutation) => [mutation.invariant, mutation.name, mutation] as const))(
    '%s: %s: its text stands in its file exactly once',
    (_, __, { file, text, replacement }) => {
      expect(readFileSync(file, 'utf8').split(text)).toHaveLength(2);
      expect(replacement).not.toBe(text);
    },
  );

  it.each(invariants)('%s has at least three, each with a name of its own', (invariant) => {
    const names = mutations.filter((mutation) => mutation.invariant === invariant).map(({ name }) => name);
    expect(names.length).toBeGreaterThanOrEqual(3);
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(invariants)('%s has a test file whose tests bear its name', (invariant) => {
    const file = invariantTests[invariant] ?? '';
    expect(existsSync(file)).toBe(true);
    const titles = [
      ...readFileSync(file, 'utf8').matchAll(/\b(?:describe|it(?:\.each\([^']*\))?)\(\s*['"`](\S+) /g),
    ];
    expect(titles.length).toBeGreaterThan(5);
    expect(titles.map(([, first]) => first).filter((first) => first !== invariant)).toEqual([]);
  });
});
