// The parts of a header value that a host may echo by themselves, and that reading any value takes linear time.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { credentialParts } from '../../src/base/credential-parts.ts';
import { runs } from '../support/run-size.ts';

const basic = (pair: string): string => Buffer.from(pair).toString('base64');

describe('the parts of', () => {
  it.each<[name: string, value: string, parts: readonly string[]]>([
    ['a token', 'sk-live-abcdef', []],
    ['an empty value', '', []],
    ['a value with spaces', 'correct horse batteries', ['horse batteries']],
    ['a bearer token', 'Bearer sk-live-abcdef', ['sk-live-abcdef']],
    ['a padded token', 'Bearer abcdefgh==', ['abcdefgh==']],
    ['a short token', 'Bearer abc', []],
    [
      'basic credentials',
      `Basic ${basic('account-1:pass-word-1')}`,
      [basic('account-1:pass-word-1'), 'account-1', 'pass-word-1'],
    ],
    ['a key as user name', `basic ${basic('sk_live_1234:')}`, [basic('sk_live_1234:'), 'sk_live_1234']],
    [
      'basic credentials without a colon',
      `Basic ${basic('sk_live_1234')}`,
      [basic('sk_live_1234'), 'sk_live_1234'],
    ],
    ['cookies', 'sid=abcdefgh-1; theme=dark; csrf="ijklmnop-2"', ['abcdefgh-1', 'ijklmnop-2']],
    ['a parameter', 'Token token=abcdefgh-1', ['token=abcdefgh-1', 'abcdefgh-1']],
    [
      'a quoted parameter beside others',
      'Token token="abcd,efgh-1", option="x"',
      ['token="abcd,efgh-1", option="x"', 'abcd,efgh-1'],
    ],
    ['a quoted parameter with escapes', 'key="abcd\\"efgh"', ['abcd\\"efgh', 'abcd"efgh']],
    [
      'parameters of OAuth',
      'OAuth oauth_token="abcdefgh", oauth_signature="ab%2Fcd%3Def"',
      ['oauth_token="abcdefgh", oauth_signature="ab%2Fcd%3Def"', 'abcdefgh', 'ab%2Fcd%3Def', 'ab/cd=ef'],
    ],
    ['a list', 'key-one-1, key-two-2', ['key-one-1', 'key-two-2']],
    [
      'a list with schemes',
      'Bearer key-one-1, Bearer key-two-2',
      ['key-one-1, Bearer key-two-2', 'key-one-1', 'Bearer key-two-2', 'key-two-2'],
    ],
    [
      'a list of schemes with parameters',
      'Token token=key-one-1, Token token="key-two-2"',
      [
        'token=key-one-1, Token token="key-two-2"',
        'key-one-1',
        'Token token="key-two-2"',
        'token="key-two-2"',
        'key-two-2',
      ],
    ],
    [
      'parameters after two words',
      'WSSE UsernameToken Username="account-1", Nonce="x"',
      [
        'UsernameToken Username="account-1", Nonce="x"',
        'UsernameToken Username="account-1"',
        'Username="account-1"',
        'account-1',
      ],
    ],
    [
      'a password with umlauts',
      `Basic ${basic('x:p\u00e4ssw\u00f6r')}`,
      [basic('x:p\u00e4ssw\u00f6r'), 'p\u00e4ssw\u00f6r'],
    ],
    [
      'a password in Latin-1',
      `Basic ${Buffer.from('x:p\u00e4ssword', 'latin1').toString('base64')}`,
      [Buffer.from('x:p\u00e4ssword', 'latin1').toString('base64'), 'p\u00e4ssword'],
    ],
    ['a value with an invalid escape', 'a=abcdefgh%zz', ['abcdefgh%zz']],
    ['a cookie with a quote', 'sid=ab"cdefgh-1; x=y', ['ab"cdefgh-1; x=y', 'ab"cdefgh-1']],
    ['a quote without an end', 'a="abcd, efgh', ['"abcd, efgh']],
  ])('%s', (_, value, parts) => {
    expect(credentialParts(value)).toEqual(parts);
  });

  it.each([
    ['quotes and backslashes', '"\\'.repeat(4_096)],
    ['opened quotes', '="'.repeat(4_096)],
    ['equals signs', 'a =='.repeat(2_048)],
    ['commas and quotes', ',"'.repeat(4_096)],
    ['spaces', `a${' '.repeat(8_190)}=`],
  ])('%s are found in linear time', (_, value) => {
    const before = process.cpuUsage();
    for (let i = 0; i < 10; i += 1) credentialParts(value);
    expect(process.cpuUsage(before).user / 10).toBeLessThan(10_000);
  });

  const unit = fc.constantFrom('a', '=', '"', '\\', ',', ';', ' ', '%', '4');
  it('any value are as long as can be masked, and each is there once', () => {
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 60 }), (value) => {
        const parts = credentialParts(`Bearer ${value}`);
        expect(parts.every(({ length }) => length >= 8)).toBe(true);
        expect(new Set(parts).size).toBe(parts.length);
      }),
      { numRuns: runs(2_000) },
    );
  });
});
