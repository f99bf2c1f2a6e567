// Patterns over paths, and that no pattern is slow.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GlobPattern } from '../../../src/box-agent/search/glob-pattern.ts';

function matches(pattern: string, path: string): boolean {
  const glob = new GlobPattern(pattern);
  let state = glob.start();
  for (const name of path.split('/')) state = glob.next(state, name);
  return glob.isMatch(state);
}

describe('a pattern', () => {
  it.each([
    ['*', 'a', true],
    ['*', '.hidden', true],
    ['*', 'a/b', false],
    ['*.ts', 'a.ts', true],
    ['*.ts', 'a.tsx', false],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['a?c', 'aéc', true],
    ['a?c', 'a😀c', true],
    ['**', 'a', true],
    ['**', 'a/b/c', true],
    ['**/*.ts', 'a.ts', true],
    ['**/*.ts', 'a/b/c.ts', true],
    ['a/**/z', 'a/z', true],
    ['a/**/z', 'a/b/c/z', true],
    ['a/**/z', 'b/z', false],
    ['**/a/**/b', 'x/a/y/a/z/b', true],
    ['a**b', 'axxb', true],
    ['a**b', 'a/b', false],
    ['[abc]', 'b', true],
    ['[a-c]x', 'cx', true],
    ['[!a-c]', 'b', false],
    ['[^a-c]', 'd', true],
    ['[]]', ']', true],
    ['[a-]', '-', true],
    ['[', '[', true],
    ['[abc', '[abc', true],
    ['\\*', '*', true],
    ['\\*', 'a', false],
    ['a.c', 'abc', false],
    ['(a|b)', 'a', false],
    ['./a', 'a', true],
    ['a//b', 'a/b', true],
  ])('%s and the path %s: %s', (pattern, path, expected) => {
    expect(matches(pattern, path)).toBe(expected);
  });

  it('agrees with a regular expression', () => {
    const name = fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 8 });
    const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*', '?'), minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(pattern, name, (glob, text) => {
        fc.pre(!['.', '**'].includes(glob) && text !== '');
        const source = glob.replaceAll('.', '\\.').replaceAll(/\*+/g, '.*').replaceAll('?', '.');
        expect(matches(glob, text)).toBe(new RegExp(`^${source}$`).test(text));
      }),
    );
  });

  it('of many stars is not slow', () => {
    const started = process.cpuUsage();
    expect(matches(`${'*a'.repeat(200)}b`, 'a'.repeat(250))).toBe(false);
    expect(matches(`${'**/a/'.repeat(100)}b`, 'a/'.repeat(200))).toBe(false);
    expect(process.cpuUsage(started).user).toBeLessThan(2_000_000);
  });

  it('knows where nothing below can match', () => {
    const glob = new GlobPattern('a/*.ts');
    const below = glob.next(glob.start(), 'a');
    expect([glob.leadsOn(glob.start()), glob.leadsOn(below), glob.next(glob.start(), 'b').size]).toEqual([
      true,
      true,
      0,
    ]);
    expect(glob.leadsOn(glob.next(below, 'x.ts'))).toBe(false);
  });
});
