// The index of paths finds the winner that a check of every rule in turn finds.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contradictionOf, createPathIndex } from '../../../src/policy/match/path-index.ts';
import { globMatches, parsePathPattern } from '../../../src/policy/match/path-pattern.ts';
import { readPath } from '../../../src/policy/match/path-spelling.ts';
import { runs } from '../../support/run-size.ts';

const text = fc
  .string({ unit: fc.constantFrom('a', 'b', '/', '*', '%61', '%EF%BD%81'), maxLength: 6 })
  .map((tail) => `/${tail}`);
const rule = fc.array(text, { maxLength: 3 });
const path = fc
  .string({ unit: fc.constantFrom('a', 'b', '/', '%61'), maxLength: 8 })
  .map((tail) => `/${tail}`);

describe('the path index', () => {
  it('finds the first rule of a host that matches, in every spelling', () => {
    const some = fc.array(fc.boolean(), { minLength: 6, maxLength: 6 });
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 6 }), some, path, (texts, isMember, asked) => {
        const rules = texts.map((patterns, value) => ({
          value,
          patterns: patterns.map(parsePathPattern).filter((pattern) => typeof pattern !== 'string'),
        }));
        const first = (spelling: 'asWritten' | 'decoded' | 'folded'): number | undefined =>
          rules.find(
            ({ value, patterns }) =>
              isMember[value] === true &&
              (patterns.length === 0 || patterns.some((pattern) => globMatches(pattern[spelling], asked))),
          )?.value;
        const members = rules.filter(({ value }) => isMember[value]).map(({ value }) => value);
        const index = createPathIndex(rules).among(members);
        const written = rules.flatMap(({ patterns }) => patterns.map((pattern) => pattern.text));
        expect(index.isPlain).toBe(!written.some((one) => one.includes('%')));
        expect(index.winnerAsSent(asked)).toBe(first('asWritten'));
        expect(index.winnerDecoded(asked)).toBe(first('decoded'));
        expect(index.winnerFolded(asked)).toBe(first('folded'));
      }),
      { numRuns: runs(5000) },
    );
  });
});

describe('a rule that only such a reading matches', () => {
  const contradiction = (texts: readonly string[], sent: string): string | undefined => {
    const patterns = texts.map(parsePathPattern).filter((pattern) => typeof pattern !== 'string');
    const paths = createPathIndex([
      { patterns, value: 'narrow' },
      { patterns: [], value: 'broad' },
    ]).among(['narrow', 'broad']);
    const readings = readPath(sent);
    if (typeof readings === 'string') throw new Error(readings);
    return contradictionOf(paths, readings, sent, paths.winnerAsSent(sent));
  };

  it.each([
    [['/repos/*/keys'], '/repos//a%2fb/keys'],
    [['/repos/*/keys'], '/repos//a%5cb/keys'],
    [['/repos/*/keys'], '/repos/a%252fb%2fkeys'],
    [['/repos/*/keys', '/caf%C3%A9/*'], '/repos//a%2fb/keys'],
  ])('%j contradicts %s', (texts, sent) => expect(contradiction(texts, sent)).toMatch('in part'));

  it.each([
    [['/files/*'], '/files//a%252fb%2fc'],
    [['/a%252Fb'], '/a%252Fb'],
    [['/a%5Cb'], '/a%5Cb'],
    [['/repos/*/keys'], '/repos//a/keys/%2f'],
  ])('%j does not contradict %s', (texts, sent) => expect(contradiction(texts, sent)).toBeUndefined());
});
