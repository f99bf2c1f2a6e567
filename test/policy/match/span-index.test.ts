// Patterns and ranges compared with one another: the index answers what asking each of them in turn answers.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cidrContains, parseAddress } from '../../../src/policy/authority/address.ts';
import { type Authority, parseAuthority } from '../../../src/policy/authority/authority.ts';
import {
  type Destination,
  indexDestinations,
  parseDestination,
} from '../../../src/policy/match/destination-list.ts';
import {
  compileHostPattern,
  type HostPattern,
  parseHostPattern,
} from '../../../src/policy/match/host-pattern.ts';
import { type Span, spanOfPattern } from '../../../src/policy/match/span.ts';
import { createSpanIndex } from '../../../src/policy/match/span-index.ts';

function parsed<T>(value: T | string): T {
  if (typeof value === 'string') throw new Error(value);
  return value;
}

// Every name of up to four labels over two letters, and some addresses, on three ports. Patterns have up to three labels,
// so each wildcard has names of its own, and the third port stands for all that no pattern names. `a-a` sorts before `a.a`.
const letters = ['a', 'b', 'a-a'];
const deeper = (names: readonly string[]): string[] =>
  names.flatMap((name) => letters.map((letter) => `${letter}.${name}`));
const levels = [letters, deeper(letters), deeper(deeper(letters)), deeper(deeper(deeper(letters)))];
const addresses = ['10.0.0.0', '10.0.0.7', '10.0.1.0', '11.0.0.0', '[::]', '[a00::7]', '[a00::8]', '[ff::]'];
const world: readonly Authority[] = [...levels.flat(), ...addresses].flatMap((host) =>
  [1, 2, 3].map((port) => parsed(parseAuthority(`${host}:${port}`))),
);

const name = fc
  .tuple(fc.constantFrom('', '*.'), fc.constantFrom(...levels.slice(0, 3).flat()))
  .map((parts) => parts.join(''));
const range = fc.constantFrom(
  ...['0.0.0.0/0', '10.0.0.0/8', '10.0.0.0/16', '10.0.0.0/24', '10.0.0.0/29', '10.0.0.7/32', '10.0.1.0/24'],
  ...['::/0', 'a00::/8', 'a00::/125', 'a00::7/128', 'a00::8/125', 'ff::/16'],
);
const port = fc.constantFrom('', ':1', ':2');
const withPort = (host: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(host, port).map((parts) => parts.join(''));
const entryText = withPort(fc.oneof(name, range));
const patternText = withPort(fc.oneof(name, fc.constantFrom(...addresses)));

function matches(entry: Destination): (authority: Authority) => boolean {
  if (entry.kind === 'names') return compileHostPattern(entry.pattern);
  return ({ host, port: at }) => {
    const address = parseAddress(host);
    if (address === undefined || !cidrContains(entry.range, address)) return false;
    return entry.port === undefined || entry.port === at;
  };
}

describe('the index of spans', () => {
  it('knows what patterns and ranges have in common with a pattern', () => {
    fc.assert(
      fc.property(fc.array(entryText, { maxLength: 6 }), patternText, (texts, askedText) => {
        const entries = texts.map((text) => parsed(parseDestination(text)));
        const asked = parsed(parseHostPattern(askedText));
        const index = indexDestinations(entries);
        const inAsked = world.filter(compileHostPattern(asked));
        const unique = [...new Map(entries.toReversed().map((entry) => [keyOf(entry), entry])).values()];
        const holding = entries.filter((one) => unique.includes(one) && inAsked.every(matches(one)));
        const meeting = entries.filter((one) => inAsked.some(matches(one)));
        const span = spanOfPattern(asked);
        expect(index.holding([span], asked.port).map(({ entry }) => entry)).toEqual(holding);
        const met = index.meeting(span, asked.port)?.entry;
        expect(met === undefined ? meeting.length === 0 : meeting.includes(met)).toBe(true);
        if (holding[0] !== undefined) expect(met).toBeDefined();
      }),
      { numRuns: 5000 },
    );
  });

  it('looks at a few of ten thousand spans to answer', () => {
    let looks = 0;
    const counted = (pattern: HostPattern): Span => {
      const { first, last } = spanOfPattern(pattern);
      return {
        get first() {
          looks += 1;
          return first;
        },
        last,
      };
    };
    const patterns = Array.from({ length: 10_000 }, (_, i) => parsed(parseHostPattern(`*.h${i}.test`)));
    const index = createSpanIndex(
      patterns.map((pattern) => ({ span: counted(pattern), port: undefined, text: pattern.text })),
    );
    looks = 0;
    const asked = spanOfPattern(parsed(parseHostPattern('a.h77.test')));
    expect(index.holding([asked], 443).map(({ text }) => text)).toEqual(['*.h77.test']);
    expect(index.meeting(spanOfPattern(parsed(parseHostPattern('*.none.test'))), 443)).toBeUndefined();
    expect(looks).toBeLessThan(100);
  });
});

/** Equal entries: the index keeps the first of them. */
function keyOf(entry: Destination): string {
  return entry.kind === 'names'
    ? entry.pattern.text
    : `${entry.range.bytes}/${entry.range.prefix}:${entry.port}`;
}
