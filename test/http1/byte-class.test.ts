// The tables against the RFC's own sets, for every byte there is.
import { describe, expect, it } from 'vitest';
import {
  classAt,
  FIELD_VALUE,
  hexValue,
  isOws,
  lowerAt,
  TARGET,
  TOKEN,
  UNDERSCORE,
} from '../../src/http1/byte-class.ts';

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

const sets: readonly [name: string, bit: number, members: RegExp][] = [
  ['a token', TOKEN, /[!#$%&'*+\-.^_`|~0-9A-Za-z]/],
  ['an underscore', UNDERSCORE, /_/],
  ['a field value', FIELD_VALUE, /[\t -~\x80-\xff]/],
  ['a target', TARGET, /[!$%&'()*+,\-./0-9:;=?@A-Z[\\\]^_`a-z{|}~]/],
];

describe('every byte is of', () => {
  it.each(sets)('%s exactly if the grammar says so', (_name, bit, members) => {
    const odd = [...everyByte].filter((byte) => {
      return ((classAt(everyByte, byte) & bit) !== 0) !== members.test(String.fromCharCode(byte));
    });
    expect(odd).toEqual([]);
  });

  it('its own case but for A to Z', () => {
    const odd = [...everyByte].filter((byte) => {
      const character = String.fromCharCode(byte);
      const lower = /[A-Z]/.test(character) ? character.toLowerCase() : character;
      return lowerAt(everyByte, byte) !== lower.charCodeAt(0);
    });
    expect(odd).toEqual([]);
  });

  it('no hexadecimal value but for the 22 digits', () => {
    const digits = [...everyByte].filter((byte) => hexValue(byte) >= 0);
    expect(String.fromCharCode(...digits)).toBe('0123456789ABCDEFabcdef');
    expect(
      digits.filter((byte) => hexValue(byte) !== Number.parseInt(String.fromCharCode(byte), 16)),
    ).toEqual([]);
  });

  it('no optional whitespace but for SP and HTAB', () => {
    expect([...everyByte].filter(isOws)).toEqual([0x09, 0x20]);
  });
});
