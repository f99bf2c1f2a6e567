import { assert, constantFrom, nat, property, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  containsKey,
  hasKeyFormat,
  hashKey,
  mintKey,
  parseKey,
} from '../../../src/platform/identity/api-key.ts';

describe('a key', () => {
  it('has a prefix for its kind, 43 random digits and a checksum of six', () => {
    expect(mintKey('service').text).toMatch(/^sp_sk_[0-9A-Za-z]{49}$/);
    expect(mintKey('personal').text).toMatch(/^sp_pt_[0-9A-Za-z]{49}$/);
    expect(parseKey(mintKey('service').text)?.kind).toBe('service');
    expect(parseKey(mintKey('personal').text)?.kind).toBe('personal');
  });

  it('is never minted twice', () => {
    expect(new Set(Array.from({ length: 1000 }, () => mintKey('service').text)).size).toBe(1000);
  });

  it('is parsed to the hash and the short form that it was minted with', () => {
    const { text, hash, shortKey } = mintKey('service');
    expect(parseKey(text)).toEqual({ kind: 'service', hash, shortKey });
    expect(hashKey(text)).toEqual(hash);
    expect(hash).toHaveLength(32);
  });

  it('is shortened to its first and last characters', () => {
    const { text, shortKey } = mintKey('personal');
    expect(shortKey).toBe(`${text.slice(0, 10)}...${text.slice(-4)}`);
  });

  it('with one character changed, left out or doubled is invalid', () => {
    const { text } = mintKey('service');
    const place = nat(text.length - 1);
    const digit = constantFrom(...'0Aa9zZ_ -é');
    assert(
      property(place, digit, (at, other) => {
        const before = text.slice(0, at);
        const after = text.slice(at + 1);
        if (text[at] !== other) expect(parseKey(before + other + after)).toBeUndefined();
        expect(parseKey(before + after)).toBeUndefined();
        expect(parseKey(text.slice(0, at + 1) + text.slice(at))).toBeUndefined();
      }),
    );
  });

  it('of a sandbox has the same format, and is none of a caller', () => {
    const { text } = mintKey('sandbox');
    expect(text).toMatch(/^sp_sb_[0-9A-Za-z]{49}$/);
    expect([hasKeyFormat(text, 'sandbox'), hasKeyFormat(text, 'service'), parseKey(text)]).toEqual([
      true,
      false,
      undefined,
    ]);
    expect(hasKeyFormat(`${text.slice(0, -1)}${text.endsWith('0') ? '1' : '0'}`, 'sandbox')).toBe(false);
  });

  it('with the prefix of the other kind is invalid', () => {
    expect(parseKey(mintKey('service').text.replace('sp_sk_', 'sp_pt_'))).toBeUndefined();
  });

  it('is found in the value of a field, also as a password, and as a part of a longer word not', () => {
    const { text } = mintKey('personal');
    const basic = Buffer.from(`user:${text}`).toString('base64');
    for (const value of [text, `Bearer ${text}`, `Basic ${basic}`, `a=1; key=${text}`])
      expect(containsKey(value), value).toBe(true);
    for (const value of ['', 'Bearer token', `x${text}`, text.slice(0, 40), `Digest ${basic}`])
      expect(containsKey(value), value).toBe(false);
  });

  it('is never an arbitrary text, however long', () => {
    assert(property(string({ maxLength: 200 }), (text) => parseKey(text) === undefined));
    expect(parseKey(`sp_sk_${'a'.repeat(1_000_000)}`)).toBeUndefined();
  });
});
