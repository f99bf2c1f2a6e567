// Patterns and ranges compared with one another: the index finds what a check of each entry in turn finds.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cidrContains, parseAddress } from '../../../src/base/address.ts';
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
import { createSpanIndex, type Span, spanOfPattern } from '../../../src/policy/match/span-index.ts';
import { runs } from '../../support/run-size.ts';

function parsed<T>(value: T | string): T {
  if (typeof value === 'string') throw new Error(value);
  return value;
}

// Every name of up to four labels over two letters, and some addresses, on three ports. Patterns have up to three labels,
// so each wildcard has names of its own, and the third port represents all that no pattern names. `a-a` sorts before `a.a`.
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
const patternTexts = withPort(fc.oneof(name, fc.constantFrom(...addresses)));

function matches(entry: Destination): (authority: Authority) => boolean {
  if (entry.kind === 'names') return compileHostPattern(entry.pattern);
  return ({ host, port: at }) => {
    const address = parseAddress(host);
    if (address === undefined || !cidrContains(entry.range, address)) return false;
    return entry.port === undefined || entry.port === at;
  };
}

describe('the index of spans', () => {
  it('finds the patterns and ranges that contain or overlap a pattern', () => {
    fc.assert(
      fc.property(fc.array(entryText, { maxLength: 6 }), patternTexts, (texts, patternText) => {
        const entries = texts.map((text) => parsed(parseDestination(text)));
        const pattern = parsed(parseHostPattern(patternText));
        const index = indexDestinations(entries);
        const hosts = world.filter(compileHostPattern(pattern));
        const unique = [...new Map(entries.toReversed().map((entry) => [keyOf(entry), entry])).values()];
        const containing = entries.filter((one) => unique.includes(one) && hosts.every(matches(one)));
        const overlapping = entries.filter((one) => hosts.some(matches(one)));
        const span = spanOfPattern(pattern);
        expect(index.containing([span], pattern.port).map(({ entry }) => entry)).toEqual(containing);
        const found = index.overlapping(span, pattern.port)?.entry;
        expect(found === undefined ? overlapping.length === 0 : overlapping.includes(found)).toBe(true);
        if (containing[0] !== undefined) expect(found).toBeDefined();
      }),
      { numRuns: runs(5000) },
    );
  });

  it('reads fewer than a hundred of ten thousand spans for a lookup', () => {
    let reads = 0;
    const countedSpan = (pattern: HostPattern): Span => {
      const { first, last } = spanOfPattern(pattern);
      return {
        get first() {
          reads += 1;
          return first;
        },
        last,
      };
    };
    const patterns = Array.from({ length: 10_000 }, (_, i) => parsed(parseHostPattern(`*.h${i}.test`)));
    const index = createSpanIndex(
      patterns.map((pattern) => ({ span: countedSpan(pattern), port: undefined, text: pattern.text })),
    );
    reads = 0;
    const host = spanOfPattern(parsed(parseHostPattern('a.h77.test')));
    expect(index.containing([host], 443).map(({ text }) => text)).toEqual(['*.h77.test']);
    expect(index.overlapping(spanOfPattern(parsed(parseHostPattern('*.none.test'))), 443)).toBeUndefined();
    expect(reads).toBeLessThan(100);
  });
});

/** Of entries with equal keys the index stores the first. */
function keyOf(entry: Destination): string {
  return entry.kind === 'names'
    ? entry.pattern.text
    : `${entry.range.bytes}/${entry.range.prefix}:${entry.port}`;
}
