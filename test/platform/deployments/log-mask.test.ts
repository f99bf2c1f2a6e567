import { assert, array, constantFrom, property, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { MAX_LINE_BYTES } from '../../../src/platform/deployments/log-lines.ts';
import { createMask } from '../../../src/platform/deployments/log-mask.ts';

const maskOf = (...values: readonly string[]) => createMask(values.map((value) => new Secret(value)));
const VALUE = 'pass/word+"1"%';

describe('the mask of secrets', () => {
  it.each([
    ['as it is', VALUE],
    ['in JSON', JSON.stringify({ key: VALUE }).slice(8, -2)],
    ['percent-encoded', encodeURIComponent(VALUE)],
    ['in base64', Buffer.from(VALUE).toString('base64')],
    ['in base64url', Buffer.from(VALUE).toString('base64url')],
  ])('finds a value %s', (_, text) => {
    const masked = maskOf(VALUE)(`a ${text} b`);
    expect(masked).toMatch(/^a \*\*\*.{0,3} b$/);
  });

  it('finds each line of a value that has several', () => {
    const mask = maskOf('first-line\nsecond-line\nx');
    expect(mask('first-line, x')).toBe('***, x');
    expect(mask('second-line')).toBe('***');
  });

  it('finds the longer of two values that contain each other', () => {
    expect(maskOf('12345678', '12345678-and-more')('12345678-and-more')).toBe('***');
  });

  it('leaves values of less than 8 bytes', () => {
    expect(maskOf('1234567', '')('1234567 true')).toBe('1234567 true');
  });

  it('finds values that overlap as one', () => {
    expect(maskOf('12345678', '5678abcd')('x12345678abcdx')).toBe('x***x');
    expect(maskOf('aaaaaaaa')('aaaaaaaaaaaa')).toBe('***');
    expect(maskOf('12345678')('1234567812345678')).toBe('******');
  });

  it('finds the beginning of a value where a line was cut', () => {
    const mask = maskOf('secret-value-1', 'value-of-another');
    expect(mask('key secret-value', true)).toBe('key ***');
    expect(mask('key secret-value-1', true)).toBe('key ***');
    expect(mask('key other', true)).toBe('key other');
    expect(mask('key secret-value', false)).toBe('key secret-value');
  });

  it('finds the beginning of a value that was cut before, by its length or by an ellipsis', () => {
    const long = `secret-${'0123456789'.repeat(100)}`;
    const mask = maskOf(long, 'short-secret');
    expect(mask(`key ${long.slice(0, 64)}, and more`)).toBe('key ***, and more');
    expect(mask(`key ${long.slice(0, 63)}, and more`)).toBe(`key ${long.slice(0, 63)}, and more`);
    expect(mask(`"msg":"key short-s…"`)).toBe('"msg":"key ***…"');
    expect(mask('sho…')).toBe('sho…');
  });

  it('finds what every occurrence of every value covers', () => {
    const text = string({ unit: constantFrom('a', 'b', 'ä'), maxLength: 60 });
    const values = array(string({ unit: constantFrom('a', 'b', 'ä'), minLength: 8, maxLength: 12 }), {
      maxLength: 4,
    });
    assert(
      property(text, values, (given, secrets) => {
        expect(maskOf(...secrets)(given).replaceAll('***', '')).toBe(withoutValues(given, secrets));
      }),
    );
  });

  it('counts bytes, and survives lone surrogates', () => {
    expect(maskOf('ääää')('ääää')).toBe('***');
    expect(maskOf('\ud800 12345678')('x')).toBe('x');
  });
});

/** Without each character that belongs to an occurrence of a value. */
function withoutValues(text: string, values: readonly string[]): string {
  const isSecret = new Set<number>();
  for (const value of values)
    for (let at = text.indexOf(value); at !== -1; at = text.indexOf(value, at + 1))
      for (let one = at; one < at + value.length; one += 1) isSecret.add(one);
  return [...text].filter((_, at) => !isSecret.has(at)).join('');
}

describe('the author of a deployment, who chooses values and lines,', () => {
  it('holds up no other one by values that nearly occur everywhere', () => {
    const values = Array.from({ length: 200 }, (_, index) => `${'a'.repeat(60)}${index}`);
    const mask = maskOf(...values, `${'b'.repeat(16_000)}c`);
    const line = 'a'.repeat(MAX_LINE_BYTES);
    // A search at each character took half a second for each line.
    for (let lines = 0; lines < 200; lines += 1) expect(mask(line) === line).toBe(true);
    expect(mask(line, true)).toMatch(/^a+\*\*\*$/);
    for (let lines = 0; lines < 200; lines += 1) expect(mask('b'.repeat(MAX_LINE_BYTES))).toBe('***');
  });

  it('ends nothing by values that are too large to be held', () => {
    const value = 'k3y'.repeat(21_000);
    const mask = maskOf(value, ...Array.from({ length: 9 }, (_, index) => String(index).repeat(65_000)));
    expect(mask('nothing of them')).toBe('nothing of them');
    // The beginning is found, and whatever follows it is masked.
    expect(mask(`key ${value.slice(0, 16_000)}`)).toBe('key ***');
    expect(mask(`key ${value.slice(0, 16_000)} and more`)).toBe('key ***');
    expect(mask(`key ${Buffer.from(value).toString('base64').slice(0, 16_000)}`)).toBe('key ***');
  });

  it('sees nothing where not even the beginnings can be held', () => {
    const values = Array.from({ length: 40 }, (_, index) => new Secret(`${index}-a-long-value`));
    expect(createMask(values, 100)('whatever')).toBe('***');
    expect(createMask(values, 1_000)('whatever')).toBe('whatever');
    expect(createMask(values, 1_000)('3-a-long-v')).toBe('***');
  });
});
