import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { isStorable, pathToUnstorable } from '../../../../src/base/json/storable-text.ts';
import { storableJson } from '../../../../src/platform/traces/feedback/storable-json.ts';

it('replaces what PostgreSQL cannot store, in texts and in names, and nothing else', () => {
  expect(storableJson({ 'a\0': ['\0', '\ud800', '\\u0000', '\\\0', '😀', '\udc00x'] })).toBe(
    String.raw`{"a\ufffd":["\ufffd","\ufffd","\\u0000","\\\ufffd","😀","\ufffdx"]}`,
  );
  expect([storableJson(null), storableJson(undefined)]).toEqual([null, null]);
});

it('leaves a storable value as it is, and makes any other storable', () => {
  const text = fc.string({
    unit: fc.constantFrom('\0', '\\', 'u', '0', 'd', '8', '\ud83d', '\ude00', '"', 'a'),
  });
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), text, fc.dictionary(text, text)), (value) => {
      const written = storableJson(value) ?? 'null';
      const read: unknown = JSON.parse(written);
      expect(pathToUnstorable(read)).toBeUndefined();
      expect(isStorable(written)).toBe(true);
      if (pathToUnstorable(value) === undefined) expect(written).toBe(JSON.stringify(value));
    }),
  );
});
