// Needles whose characters are written as character references are found in every spelling and however the text comes in
// pieces. The reference decodes the whole text and looks for the needle at each offset.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BodyMask } from '../../../src/proxy/mask/body-mask.ts';
import { compileNeedles } from '../../../src/proxy/mask/needle-set.ts';
import { ReferenceScanner, findNeedles } from '../../../src/proxy/mask/reference-scanner.ts';
import { runs } from '../../support/run-size.ts';

/** The offsets that are part of a needle. */
function hidden(needle: string, pieces: readonly string[]): readonly number[] {
  const offsets = new Set<number>();
  const scanner = new ReferenceScanner(compileNeedles([needle]), (start, end) => {
    for (let at = start; at < end; at += 1) offsets.add(at);
  });
  for (const piece of pieces) scanner.scan(Buffer.from(piece));
  scanner.end();
  return [...offsets].toSorted((a, b) => a - b);
}

function offsets(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

describe('a needle with references', () => {
  const needle = 'ab+cd+ef';
  it.each([
    ['decimal', 'ab&#43;cd&#43;ef'],
    ['hexadecimal', 'ab&#x2b;cd&#X2B;ef'],
    ['padded', 'ab&#000043;cd&#x0000002B;ef'],
    ['all of it', '&#97;&#98;&#43;&#99;&#100;&#43;&#101;&#102;'],
    ['one of several', 'ab+cd&#43;ef'],
    ['beside percent escapes', '%61b&#43;cd%2Bef'],
  ])('%s is found, cut anywhere', (_, form) => {
    const text = `x&y ${form}&#44;&amp`;
    const expected = offsets(4, 4 + form.length);
    for (let cut = 0; cut <= text.length; cut += 1)
      expect(hidden(needle, [text.slice(0, cut), text.slice(cut)])).toEqual(expected);
    expect(hidden(needle, [...text])).toEqual(expected);
  });

  it.each([
    ['without an end', 'ab&#43cd+ef'],
    ['of another character', 'ab&#44;cd+ef'],
    ['of a character beyond ASCII', 'ab&#x2b2b;cd+ef'],
    ['without digits', 'ab&#;cd+ef'],
    ['of an unknown name', 'ab&plus;cd+ef'],
    ['with zeros without an end', `ab&#${'0'.repeat(40)}43;cd+ef`],
  ])('%s is none', (_, text) => {
    expect(hidden(needle, [text])).toEqual([]);
    expect(findNeedles(Buffer.from(text), compileNeedles([needle]))).toEqual([]);
  });

  it('holds back what may still become one, and nothing else', () => {
    const scanner = new ReferenceScanner(compileNeedles([needle]), () => undefined);
    const held = (text: string): number => {
      scanner.scan(Buffer.from(text));
      return scanner.safeToEmitUpTo;
    };
    expect([held('x ab&#4'), held('3;'), held('cx'), held('&'), held('=')]).toEqual([2, 2, 11, 11, 13]);
  });
});

describe('for any text', () => {
  const unit = fc.constantFrom(
    'a',
    'b',
    '+',
    '&#97;',
    '&#x62;',
    '&#43;',
    '&#X2b;',
    '&#44;',
    '&',
    '&#',
    ';',
    'x',
  );

  const anyNeedle = fc.string({ unit: fc.constantFrom('a', 'b', '+'), minLength: 4, maxLength: 6 });

  it('what is found is what stands in the text, or in the text with its references decoded, wherever it is cut', () => {
    fc.assert(
      fc.property(anyNeedle, fc.array(unit, { maxLength: 24 }), (needle, units) => {
        const text = units.join('');
        const expected = reference(needle, text);
        for (const pieces of cutsOf(text)) expect(hidden(needle, pieces)).toEqual(expected);
      }),
      { numRuns: runs(2_000) },
    );
  });

  it('a body is masked alike wherever it is cut, also where escapes and references meet', () => {
    const mixed = fc.oneof(
      unit,
      fc.constantFrom('%', '%6', '%61', '%2b', '&#37;', '&#x36;', '1', '6', '&amp;'),
    );
    fc.assert(
      fc.property(
        fc.array(anyNeedle, { minLength: 1, maxLength: 2 }),
        fc.array(mixed, { maxLength: 16 }),
        (needles, units) => {
          const text = units.join('');
          const whole = masked(needles, [text]);
          const found = new Set(needles.flatMap((needle) => reference(needle, text)));
          for (const at of found) expect(whole[at]).toBe('*');
          for (const pieces of cutsOf(text)) expect(masked(needles, pieces)).toBe(whole);
        },
      ),
      { numRuns: runs(2_000) },
    );
  });
});

/** In one piece, cut in two at each byte, and each byte by itself. */
function cutsOf(text: string): readonly (readonly string[])[] {
  const inTwo = Array.from({ length: text.length }, (_, at) => [text.slice(0, at), text.slice(at)]);
  return [[text], ...inTwo, [...text]];
}

function masked(needles: readonly string[], pieces: readonly string[]): string {
  const body = new BodyMask(compileNeedles(needles));
  let out = '';
  const emit = (piece: Buffer): void => void (out += piece.toString('latin1'));
  for (const piece of pieces) body.push(Buffer.from(piece), emit);
  body.end(emit);
  return out;
}

function reference(needle: string, text: string): readonly number[] {
  const found = new Set<number>();
  const add = (
    symbols: readonly { readonly char: string; readonly from: number; readonly to: number }[],
  ): void => {
    for (let i = 0; i + needle.length <= symbols.length; i += 1) {
      const part = symbols.slice(i, i + needle.length);
      if (part.map(({ char }) => char).join('') !== needle) continue;
      for (let at = part[0]?.from ?? 0; at < (part.at(-1)?.to ?? 0); at += 1) found.add(at);
    }
  };
  add([...text].map((char, at) => ({ char, from: at, to: at + 1 })));
  const decoded = [...text.matchAll(/&#([0-9]+);|&#[xX]([0-9a-fA-F]+);|[^]/g)].map((match) => ({
    char:
      match[1] || match[2]
        ? String.fromCharCode(match[1] ? Number(match[1]) : Number.parseInt(match[2] ?? '', 16))
        : match[0],
    from: match.index,
    to: match.index + match[0].length,
  }));
  add(decoded);
  return [...found].toSorted((a, b) => a - b);
}
