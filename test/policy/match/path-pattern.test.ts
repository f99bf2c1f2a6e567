// The glob of match_paths: tables, a naive second implementation, picomatch where the two mean the same, and its speed
// on the worst that a pattern may be.
import * as fc from 'fast-check';
import picomatch from 'picomatch';
import { describe, expect, it } from 'vitest';
import { globMatches, matchingEffort, parsePathPattern } from '../../../src/policy/match/path-pattern.ts';
import { runs } from '../../support/run-size.ts';

function matches(text: string, path: string): boolean {
  const pattern = parsePathPattern(text);
  if (typeof pattern === 'string') throw new Error(pattern);
  return globMatches(pattern.asWritten, path);
}

describe('a path pattern', () => {
  const rows: readonly [pattern: string, matching: readonly string[], other: readonly string[]][] = [
    ['/v1', ['/v1'], ['/v1/', '/v10', '/', '/v', '/V1', '/v1/x']],
    ['/v1/', ['/v1/'], ['/v1', '/v1/x']],
    ['/v1/*', ['/v1/', '/v1/x', '/v1/x/y', '/v1/.git', '/v1//'], ['/v1', '/v10', '/v2/x', '/', '/x/v1/y']],
    ['/v1/**', ['/v1/', '/v1/x', '/v1/x/y', '/v1/.git'], ['/v1', '/v10', '/v2/x']],
    ['/v1*', ['/v1', '/v10', '/v1/', '/v1/x', '/v1beta/x'], ['/v', '/v2', '/x/v1']],
    ['/*', ['/', '/x', '/x/y'], ['']],
    ['/**', ['/', '/x', '/x/y'], ['']],
    [
      '/repos/*/issues',
      ['/repos/a/issues', '/repos/a-b.c/issues'],
      ['/repos/a/b/issues', '/repos/issues', '/repos/a/issues/1'],
    ],
    [
      '/repos/*/issues/*',
      ['/repos/a/issues/', '/repos/a/issues/1/c'],
      ['/repos/a/b/issues/1', '/repos/a/issues'],
    ],
    ['/m/*:run', ['/m/x:run', '/m/:run', '/m/a:run:run'], ['/m/x/y:run', '/m/x:runs', '/m/run']],
    ['/a*b*c', ['/abc', '/aXbYc', '/abbcc', '/aXbYcZc'], ['/ab/c', '/a/bc', '/acb', '/abcd', '/abc/']],
    ['/a*b/c*d/e', ['/ab/cd/e', '/aXXb/cYd/e'], ['/ab/c/d/e', '/ab/cd/e/', '/a/b/cd/e']],
    ['/*/x', ['/a/x', '//x'], ['/x', '/a/b/x']],
    ['/x/*/*', ['/x/a/', '/x/a/b', '/x/a/b/c'], ['/x/a', '/x/']],
    ['/a%20b', ['/a%20b'], ['/a b', '/a%2520b']],
    ["/~u/(1)/$@!'=,&+", ["/~u/(1)/$@!'=,&+"], ['/~u/1/']],
  ];
  for (const [pattern, matching, other] of rows) {
    it.each(matching)(`${pattern} matches %s`, (path) => expect(matches(pattern, path)).toBe(true));
    it.each(other)(`${pattern} does not match "%s"`, (path) => expect(matches(pattern, path)).toBe(false));
  }

  const refused: readonly [pattern: string, reason: RegExp][] = [
    ['', /begin with \//],
    ['v1/*', /begin with \//],
    ['*', /begin with \//],
    ['https://api.test/v1', /begin with \//],
    ['/v1?x=1', /query/],
    ['/v1#x', /fragment/],
    ['/v1;x', /parameter/],
    ['/v1//x', /slashes/],
    ['/v1/**/x', /at the end only/],
    ['/v1**', /at the end only/],
    ['/v1/***', /at the end only/],
    ['/v1/../x', /dot segment/],
    ['/./x', /dot segment/],
    ['/%2e%2e/x', /dot segment/],
    ['/%252e/x', /dot segment/],
    ['/a%00', /control/],
    ['/a%0a', /control/],
    ['/a%3bb/*', /write \* /],
    ['/a%3Fb', /write \* /],
    ['/x/C%23', /write \* /],
    ['/x/%253b', /write \* /],
    ['/a%EF%BC%9Fb', /write \* /],
    ['/%E2%80%A5/x', /dot segment/],
    ['/%20../x', /dot segment/],
    ['/a%ff', /UTF-8/],
    ['/%E3*%81%82', /UTF-8/],
    ['/{a,b}', /one entry for each/],
    ['/[ab]', /one entry for each/],
    ['/a|b', /one entry for each/],
    ['/a b', /percent-encode /],
    ['/käse', /percent-encode /],
    ['/a%zz', /percent-encode /],
    ['/a%', /percent-encode /],
    ['/a\\b', /percent-encode /],
    [`/${'a'.repeat(256)}`, /256/],
    ['/*a*a*a*a*a*a*a*a*', /stars/],
  ];
  it.each(refused)('"%s" is rejected, with a correction', (pattern, reason) => {
    expect(parsePathPattern(pattern)).toMatch(reason);
  });
});

/** The definition, without a thought for speed. */
function naive(pattern: string, path: string): boolean {
  if (pattern === '*') return true;
  const [head = '', ...rest] = pattern;
  const tail = rest.join('');
  if (head === '') return path === '';
  if (head !== '*') return path.startsWith(head) && naive(tail, path.slice(1));
  if (naive(tail, path)) return true;
  return path !== '' && !path.startsWith('/') && naive(pattern, path.slice(1));
}

describe('whatever pattern and path,', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '/', '*'), maxLength: 10 });
  const patterns = letters.map((text) => `/${text}`);
  // A path that comes from the pattern matches often enough to be worth asking.
  const paths = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 12 }).map((text) => `/${text}`);
  const related = patterns.chain((pattern) =>
    fc.tuple(
      fc.constant(pattern),
      fc.oneof(
        paths,
        fc
          .array(fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 3 }), {
            minLength: 12,
            maxLength: 12,
          })
          .map((fills) => fills.reduce((path, fill) => path.replace('*', fill), pattern)),
      ),
    ),
  );

  it('the glob matches as its definition does', () => {
    let hits = 0;
    fc.assert(
      fc.property(related, ([pattern, path]) => {
        if (typeof parsePathPattern(pattern) === 'string') return;
        const expected = naive(pattern.endsWith('/**') ? pattern.slice(0, -1) : pattern, path);
        if (expected) hits += 1;
        expect(matches(pattern, path)).toBe(expected);
      }),
      { numRuns: runs(20_000) },
    );
    expect(hits).toBeGreaterThan(500);
  });

  it('picomatch agrees, where the last star is no star or has a segment of its own', () => {
    fc.assert(
      fc.property(related, ([pattern, path]) => {
        if (typeof parsePathPattern(pattern) === 'string' || path.includes('//')) return;
        if (/[^/]\*$/.test(pattern)) return;
        // Its star matches at least one character where it is a whole segment, ours also none; and its `/**`
        // also takes the parent.
        if (/\/\*\//.test(pattern)) return;
        const theirs = pattern.replace(/\/\*\*?$/, '/**');
        const parent =
          theirs !== pattern.replace(/\*\*$/, '') && theirs.endsWith('/**') && path === theirs.slice(0, -3);
        if (parent) return;
        expect(matches(pattern, path)).toBe(
          picomatch.isMatch(path, theirs, { dot: true, strictSlashes: true }),
        );
      }),
      { numRuns: runs(20_000) },
    );
  });
});

describe('the worst patterns', () => {
  const path = `/${'a'.repeat(8190)}`;
  const rows: readonly [name: string, pattern: string][] = [
    ['many stars', '/*a*a*a*a*a*a*a*b'],
    ['a long literal behind a star', `/*${'a'.repeat(240)}b`],
    ['a long literal that fails at its start', `/*b${'a'.repeat(240)}`],
    ['a short literal that nearly meets everywhere', '/*aab*'],
    ['literals that meet everywhere', `/*${'a'.repeat(80)}*${'a'.repeat(80)}*${'a'.repeat(80)}b`],
  ];
  it.each(rows)('%s cost at most a few passes over the path', (_name, text) => {
    const pattern = parsePathPattern(text);
    if (typeof pattern === 'string') throw new Error(pattern);
    // CPU time of this process and not time on the wall; the bound is fifty times what it takes.
    const before = process.cpuUsage();
    for (let i = 0; i < 100; i += 1) expect(globMatches(pattern.asWritten, path)).toBe(false);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 100).toBeLessThan(1000);
  });
});

describe('the effort of matching', () => {
  it.each([
    ['/v1/x', 'compare'],
    ['/v1/*', 'compare'],
    ['/v1/**', 'compare'],
    ['/v1*', 'compare'],
    ['/a/*/b', 'look'],
    ['/a/*/*', 'look'],
    ['/*/b/*', 'look'],
    ['/a*b', 'look'],
    ['/a*b*', 'search'],
    ['/a*bc*d', 'search'],
    ['/x/*b*/**', 'search'],
  ] as const)('of %s is to %s', (text, effort) => {
    expect(matchingEffort(text)).toBe(effort);
  });
});

describe('the spellings of a pattern', () => {
  it.each([
    ['/a/*', true],
    ['/a/**', true],
    ['/a%2Fb/*', false],
    ['/a/*%61', false],
  ])('of %s are one: %s', (text, isOne) => {
    const pattern = parsePathPattern(text);
    if (typeof pattern === 'string') throw new Error(pattern);
    expect(pattern.asWritten === pattern.decoded).toBe(isOne);
  });

  it.each([
    ['/v1/*', true],
    [encodeURI('/資料/*'), true],
    [encodeURI('/\uff76\uff9e/*'), false],
  ])('of %s are one under normalization: %s', (text, isOne) => {
    const pattern = parsePathPattern(text);
    if (typeof pattern === 'string') throw new Error(pattern);
    expect(pattern.decoded === pattern.folded).toBe(isOne);
  });

  it.each(['/a%4', '/a%', '/a%4g'])('%s has half an escape', (text) => {
    expect(parsePathPattern(text)).toMatch(/percent-encode /);
  });
});
