import { isUtf8 } from 'node:buffer';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { Utf8Check } from '../../../../../src/platform/traces/ingestion/json/utf8-check.ts';

it('bytes in pieces are UTF-8 when they are as a whole', () => {
  const byte = fc.oneof(
    fc.nat(255),
    fc.constantFrom(0x80, 0xbf, 0xc3, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x8e, 0x89),
  );
  const text = fc.string({ unit: 'binary' }).map((chars) => [...Buffer.from(chars)]);
  fc.assert(
    fc.property(fc.oneof(text, fc.array(byte, { maxLength: 12 })), fc.nat(5), (bytes, size) => {
      const whole = Buffer.from(bytes);
      const check = new Utf8Check();
      let isValid = true;
      for (let at = 0; at < whole.length; at += size + 1)
        isValid = check.push(whole.subarray(at, at + size + 1)) && isValid;
      expect(isValid && check.end()).toBe(isUtf8(whole));
    }),
  );
});
