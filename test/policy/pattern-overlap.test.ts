// Patterns compared with patterns: the tree walk answers what trying every host of a small world answers.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Authority } from '../../src/policy/authority.ts';
import { compileHostPattern, type HostPattern, parseHostPattern } from '../../src/policy/host-pattern.ts';
import { createOverlapIndex } from '../../src/policy/pattern-overlap.ts';

function patternOf(text: string): HostPattern {
  const pattern = parseHostPattern(text);
  if (typeof pattern === 'string') throw new Error(pattern);
  return pattern;
}

// Every name of up to four labels over two letters, on three ports. Patterns have up to three labels, so each wildcard
// has names of its own, and the third port stands for all that no pattern names.
const letters = ['a', 'b'];
const deeper = (names: readonly string[]): string[] =>
  names.flatMap((name) => letters.map((letter) => `${letter}.${name}`));
const levels = [letters, deeper(letters), deeper(deeper(letters)), deeper(deeper(deeper(letters)))];
const world: readonly Authority[] = levels
  .flat()
  .flatMap((host) =>
    [1, 2, 3].map((port) => ({ host, port, kind: 'name', text: `${host}:${port}` }) as const),
  );

const patternText = fc
  .tuple(
    fc.constantFrom('', '*.'),
    fc.constantFrom(...levels.slice(0, 3).flat()),
    fc.constantFrom('', ':1', ':2'),
  )
  .map((parts) => parts.join(''));

describe('the overlap of patterns', () => {
  it('is what their hosts and ports have in common', () => {
    fc.assert(
      fc.property(fc.array(patternText, { maxLength: 3 }), patternText, (texts, asked) => {
        const index = createOverlapIndex<{ text: string }>();
        for (const text of texts) index.add(patternOf(text), { text });
        const inAsked = world.filter(compileHostPattern(patternOf(asked)));
        const others = texts.map((text) => ({ text, has: compileHostPattern(patternOf(text)) }));
        const holding = others.filter(({ has }) => inAsked.every(has)).map(({ text }) => text);
        const meeting = others.filter(({ has }) => inAsked.some(has)).map(({ text }) => text);
        const held = index.holding(patternOf(asked))?.text;
        const met = index.meeting(patternOf(asked))?.text;
        expect(held === undefined ? holding : holding.includes(held)).toEqual(held === undefined ? [] : true);
        expect(met === undefined ? meeting : meeting.includes(met)).toEqual(met === undefined ? [] : true);
      }),
      { numRuns: 3000 },
    );
  });
});
