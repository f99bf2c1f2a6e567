import { inspect } from 'node:util';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../src/base/secret.ts';

const value = 'sesame-open-now';

describe('a secret', () => {
  const secret = new Secret(value);
  const prints: readonly (readonly [string, () => string])[] = [
    ['String()', () => String(secret)],
    ['a template literal', () => `${secret}`],
    ['concatenation', () => '' + (secret as unknown as string)],
    ['JSON', () => JSON.stringify({ secret })],
    ['util.inspect', () => inspect({ secret }, { showHidden: true, depth: 9 })],
    ['Object.entries', () => JSON.stringify(Object.entries(secret))],
    [
      'pino',
      () => {
        let line = '';
        pino({}, { write: (text: string) => void (line += text) }).info(
          { secret, nested: { secret } },
          `${secret}`,
        );
        return line;
      },
    ],
  ];
  it.each(prints)('does not show in %s', (_, print) => expect(print()).not.toContain(value));

  it('opens in reveal alone', () => expect(secret.reveal()).toBe(value));

  it('is compared whole, whatever the lengths', () => {
    expect([secret.equals(value), secret.equals(`${value}x`), secret.equals('')]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('has one fingerprint a value', () => {
    expect(secret.fingerprint()).toBe(new Secret(value).fingerprint());
    expect(secret.fingerprint()).not.toBe(new Secret('other').fingerprint());
  });
});

describe('the credentials of an authorization value', () => {
  const basic = Buffer.from('user:pass-word-1').toString('base64');
  it.each([
    ['Bearer sk-live-abcdef', ['sk-live-abcdef']],
    ['token   ghp_123456789', ['ghp_123456789']],
    [`Basic ${basic}`, [basic, 'pass-word-1']],
    ['sid=abcdefgh-1; csrf=ijklmnop-2', ['abcdefgh-1', 'ijklmnop-2']],
    ['sk-live-abcdef', []],
    ['', []],
  ])('%s', (text, found) => {
    expect(new Secret(text).credentials().map((one) => one.reveal())).toEqual(found);
  });

  it('are not hidden by two texts that can be read', () => {
    const found = new Secret('a=abcdefgh').credentials(['abcd', 'efgh']).map((one) => one.reveal());
    expect(found).toEqual(['abcdefgh']);
  });

  it('are not those that can be read anyway', () => {
    const secret = new Secret('sid=abcdefgh-1; view=full-page-view');
    const found = secret.credentials(['sid=', '; view=full-page-view']);
    expect(found.map((one) => one.reveal())).toEqual(['abcdefgh-1']);
  });

  it('are each there once', () => {
    const [one, other, same] = [new Secret('a'), new Secret('b'), new Secret('a')];
    expect(Secret.distinct([one, other, same])).toEqual([one, other]);
    expect(Secret.distinct([one, other, same])[0]).toBe(one);
  });
});
