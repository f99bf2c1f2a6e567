// What is passed over contains no beginning of a needle, however it is read. The reference reads the text from each of its
// bytes in every way in which a search may read it.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileNeedles } from '../../../src/proxy/mask/needle-set.ts';
import { nextBeginning } from '../../../src/proxy/mask/needle-skip.ts';
import { runs } from '../../support/run-size.ts';

const ESCAPE = /^%([0-9a-f]{2})/i;
const REFERENCE = /^&#(?:0{0,3}([0-9]{1,2})|[xX]0{0,3}([0-7][0-9a-fA-F]));/;

/** Every text of four symbols that may be read at `at`: literally, then with escapes and references decoded. */
function readings(text: string, at: number): readonly string[] {
  const read = (from: number, symbols: string, isDecoding: boolean): readonly string[] => {
    if (symbols.length === 4) return [symbols];
    if (from >= text.length) return [];
    const rest = text.slice(from);
    const literal = isDecoding ? [] : read(from + 1, symbols + text.charAt(from), false);
    const [whole, digits] = ESCAPE.exec(rest) ?? [];
    const [reference, decimal, hex] = REFERENCE.exec(rest) ?? [];
    const decoded =
      whole !== undefined
        ? read(from + 3, symbols + String.fromCharCode(Number.parseInt(digits ?? '', 16)), true)
        : reference !== undefined
          ? read(
              from + reference.length,
              symbols + String.fromCharCode(decimal ? Number(decimal) : Number.parseInt(hex ?? '', 16)),
              true,
            )
          : isDecoding
            ? read(from + 1, symbols + text.charAt(from), true)
            : [];
    return [...literal, ...decoded];
  };
  return read(at, '', false);
}

describe('the text that is passed over', () => {
  const symbol = fc.constantFrom('a', 'b', '4', '1', '6', '2');
  const needles = fc.array(fc.string({ unit: symbol, minLength: 4, maxLength: 6 }), {
    minLength: 1,
    maxLength: 3,
  });
  const signs = fc.string({ unit: fc.constantFrom('a', '4', '%', '&', ';'), minLength: 4, maxLength: 6 });
  const unit = fc.constantFrom(
    ...['a', 'b', '4', '1', '6', '%', '&', ';', '#'],
    ...['%61', '%62', '%34', '%41', '%25', '&#97;', '&#x62;', '&#52;', '&#0049;', '&#37;', '&amp;'],
  );
  const texts = fc.array(unit, { maxLength: 30 }).map((units) => units.join(''));

  it.each([
    ['of plain needles', needles],
    ['of needles with signs', fc.array(fc.oneof(signs, signs), { minLength: 1, maxLength: 2 })],
  ])('contains no beginning %s', (_, sets) => {
    fc.assert(
      fc.property(sets, texts, fc.nat(), (set, text, from) => {
        const beginnings = new Set(set.map((needle) => needle.slice(0, 4)));
        const start = from % (text.length + 1);
        const reached = nextBeginning(Buffer.from(text), start, compileNeedles(set));
        expect(reached).toBeGreaterThanOrEqual(start);
        expect(reached).toBeLessThanOrEqual(text.length);
        for (let at = start; at < reached; at += 1)
          for (const reading of readings(text, at)) expect(beginnings.has(reading)).toBe(false);
      }),
      { numRuns: runs(10_000) },
    );
  });

  it('is all but the last symbols of a text without one', () => {
    const set = compileNeedles(['sesame-open-now']);
    const passed = (text: string): number => text.length - nextBeginning(Buffer.from(text), 0, set);
    expect(passed('lorem ipsum, dolor sit amet')).toBe(3);
    expect(passed('%6c%6f%72%65%6d %69%70%73%75%6d')).toBeLessThanOrEqual(9);
    expect(passed('&lt;p&gt;lorem&#32;ipsum&#x2c; dolor&lt;/p&gt;')).toBeLessThanOrEqual(12);
  });

  it('ends where a needle begins', () => {
    const set = compileNeedles(['sesame-open-now']);
    expect(nextBeginning(Buffer.from('lorem ipsum sesame'), 0, set)).toBe(12);
    expect(nextBeginning(Buffer.from('lorem %73%65s%61me ipsum'), 0, set)).toBe(6);
    expect(nextBeginning(Buffer.from('lorem &#115;e&#x73;ame ipsum'), 0, set)).toBe(6);
  });
});
