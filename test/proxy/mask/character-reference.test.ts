// Which texts are a reference to an ASCII character, wherever the text ends.
import { describe, expect, it } from 'vitest';
import {
  INCOMPLETE,
  NO_REFERENCE,
  nextReference,
  referenceAt,
} from '../../../src/proxy/mask/character-reference.ts';

const read = (text: string): number | string => {
  const found = referenceAt(Buffer.from(text), 0);
  if (found === NO_REFERENCE) return 'none';
  return found === INCOMPLETE ? 'incomplete' : `${found >> 8} ${String.fromCharCode(found & 0xff)}`;
};

describe('a character reference', () => {
  it.each([
    ['&#43;', '5 +'],
    ['&#x2B;', '6 +'],
    ['&#X002b;;', '8 +'],
    ['&#000000000000000000000000043;', '30 +'],
    ['&lt;', '4 <'],
    ['&quot;x', '6 "'],
    ['&apos;', "6 '"],
    ['&amp;', '5 &'],
    ['&gt;', '4 >'],
  ])('%s', (text, expected) => {
    expect(read(text)).toBe(expected);
    // Every beginning of one may still become one.
    const length = Number(expected.split(' ')[0]);
    for (let end = 1; end < length; end += 1) expect(read(text.slice(0, end))).toBe('incomplete');
  });

  it.each([
    '&#;',
    '&#x;',
    '&;',
    '&#128;',
    '&#x80;',
    '&#4a;',
    '&#43 ',
    '&#xg;',
    '&LT;',
    '&plus;',
    '&ampe;',
    '&ampere',
  ])('%s is none', (text) => {
    expect(read(text)).toBe('none');
  });

  it('with very many zeros is none', () => {
    expect(read(`&#${'0'.repeat(40)}43;`)).toBe('none');
  });

  it('is found in a text', () => {
    expect(nextReference(Buffer.from('a&b &c; &#x2b;'), 0)).toBe(8);
    expect(nextReference(Buffer.from('a&b &c; &#x2b;'), 9)).toBe(14);
    expect(nextReference(Buffer.from('a & b &am'), 0)).toBe(6);
  });
});
