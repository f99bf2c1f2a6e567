import { describe, expect, it } from 'vitest';
import { hasInvisible, LINE, NAME, VISIBLE } from '../../../src/base/json/printable-text.ts';

const everyUnit = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code));

describe('the ranges of a pattern', () => {
  it.each([
    ['a line', LINE, /^[^\p{Cc}\p{Zl}\p{Zp}]*$/u],
    ['a name', NAME, /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]*$/u],
    ['a visible name', VISIBLE, /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u],
  ])('of %s are those of the Unicode properties', (_, pattern, properties) => {
    const different = everyUnit.filter((unit) => pattern.test(unit) !== properties.test(unit));
    expect(different.map((unit) => unit.charCodeAt(0).toString(16))).toEqual([]);
    expect(pattern.source).not.toContain(String.raw`\p`);
  });
});

it.each([
  ['a', false],
  ['\u{1f600}', false],
  ['\u200b', true],
  ['\u{e0041}', true],
])('an invisible character in %j: %s', (text, expected) => {
  expect(hasInvisible(text)).toBe(expected);
});
