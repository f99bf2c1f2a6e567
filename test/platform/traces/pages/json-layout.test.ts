import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { layOutJson } from '../../../../src/platform/traces/pages/json-layout.ts';

describe('JSON on lines', () => {
  it('is what JSON.stringify writes, but with the numbers and escapes as they were sent', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        expect(layOutJson(JSON.stringify(value, undefined, space))).toBe(JSON.stringify(value, undefined, 2));
      }),
    );
    expect(layOutJson('{"a":12345678901234567890.10,"a":"\\u0041"}')).toBe(
      '{\n  "a": 12345678901234567890.10,\n  "a": "\\u0041"\n}',
    );
  });

  it('may be cut anywhere, and loses nothing but white space', () => {
    const text = '{"a":[1,{"b":"x\\"y, {z"}],"c":{},"d":null}';
    const plain = (given: string): string => given.replaceAll(/\s/g, '');
    for (let end = 0; end <= text.length; end += 1)
      expect(plain(layOutJson(text.slice(0, end)))).toBe(plain(text.slice(0, end)));
  });

  it('of a hundred thousand brackets, and of text that is no JSON, takes no time', () => {
    const started = performance.now();
    const deep = layOutJson('['.repeat(65_536));
    layOutJson('"\\'.repeat(32_768));
    layOutJson('\u0000 \ud800 }}]],,::'.repeat(4_000));
    expect(performance.now() - started).toBeLessThan(1_000);
    expect(deep.length).toBeLessThan(330_000);
    expect(deep.replaceAll(/\s/g, '')).toBe('['.repeat(65_536));
  });
});
