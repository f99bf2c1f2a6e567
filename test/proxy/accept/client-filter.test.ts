// Who may use the listener: addresses by CIDR, tokens in the spellings that real clients use.
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import type { RequestHead } from '../../../src/http1/head-parser.ts';
import { parseCidr } from '../../../src/base/address.ts';
import {
  type PresentedToken,
  isClientAllowed,
  presentedToken,
} from '../../../src/proxy/accept/client-filter.ts';
import { requestHead } from '../request-head.ts';

const token = 'a-proxy-token-of-enough-length';

const headWith = (...fields: string[]): RequestHead => requestHead('CONNECT a.test:443 HTTP/1.1', ...fields);
const basic = (credentials: string): string => Buffer.from(credentials).toString('base64');

describe('a client address', () => {
  const ranges = ['10.0.0.0/8', '127.0.0.2', 'fd00::/8'].flatMap((text) => parseCidr(text) ?? []);
  it.each([
    ['inside a range', '10.200.3.4', true],
    ['a listed address', '127.0.0.2', true],
    ['beside a listed address', '127.0.0.1', false],
    ['v4 as a dual-stack socket reports it', '::ffff:10.0.0.1', true],
    ['v4-mapped and not listed', '::ffff:11.0.0.1', false],
    ['v6 inside a range', 'fd12::1', true],
    ['v6 with the zone of its interface', 'fd12::1%eth0', true],
    ['v6 outside', '2001:db8::1', false],
    ['unknown, because the socket is gone already', undefined, false],
    ['unreadable', 'not an address', false],
  ])('%s: %s is admitted: %s', (_, address, isAdmitted) => {
    expect(isClientAllowed(address, ranges)).toBe(isAdmitted);
  });

  it('is not checked without allow_clients', () => {
    expect(isClientAllowed(undefined, undefined)).toBe(true);
  });

  it('is rejected by an empty allow_clients', () => {
    expect(isClientAllowed('127.0.0.1', [])).toBe(false);
  });
});

describe('a proxy token', () => {
  const rows: readonly (readonly [string, readonly string[], boolean])[] = [
    ['as the password of Basic', [`Proxy-Authorization: Basic ${basic(`sallyport:${token}`)}`], true],
    ['as the password of any user', [`Proxy-Authorization: Basic ${basic(`x:${token}`)}`], true],
    ['as the user name with an empty password', [`Proxy-Authorization: Basic ${basic(`${token}:`)}`], true],
    ['as a bearer token', [`Proxy-Authorization: Bearer ${token}`], true],
    ['with the scheme in another case', [`proxy-authorization: bEARER ${token}`], true],
    ['with more space behind the scheme', [`Proxy-Authorization: Bearer   ${token}`], true],
    ['absent', [], false],
    ['in Authorization, which is for the origin', [`Authorization: Bearer ${token}`], false],
    ['empty', ['Proxy-Authorization:'], false],
    ['a scheme alone', ['Proxy-Authorization: Basic'], false],
    [
      'two credentials in one field',
      [`Proxy-Authorization: Basic ${basic(`x:${token}`)}, Basic eDp5`],
      false,
    ],
    ['Basic without a colon', [`Proxy-Authorization: Basic ${basic(token)}`], false],
    [
      'the token as user beside a wrong password',
      [`Proxy-Authorization: Basic ${basic(`${token}:x`)}`],
      false,
    ],
    ['one character short', [`Proxy-Authorization: Bearer ${token.slice(0, -1)}`], false],
    ['one character long', [`Proxy-Authorization: Bearer ${token}x`], false],
    ['in another case', [`Proxy-Authorization: Bearer ${token.toUpperCase()}`], false],
    ['under another scheme', [`Proxy-Authorization: Digest ${token}`], false],
    [
      'twice, even if both are right',
      [`Proxy-Authorization: Bearer ${token}`, `Proxy-Authorization: Bearer ${token}`],
      false,
    ],
    ['behind a wrong one', ['Proxy-Authorization: Bearer x', `Proxy-Authorization: Bearer ${token}`], false],
  ];
  const isPresented = (shown: PresentedToken, text: string): boolean =>
    shown instanceof Secret && shown.equals(text);

  it.each(rows)('%s', (_, fields, isAdmitted) => {
    expect(isPresented(presentedToken(headWith(...fields)), token)).toBe(isAdmitted);
  });

  it('with a colon in it passes as the password', () => {
    const head = headWith(`Proxy-Authorization: Basic ${basic('u:with:colon:inside')}`);
    expect(isPresented(presentedToken(head), 'with:colon:inside')).toBe(true);
  });

  it('that is unreadable is not the same as none', () => {
    expect(presentedToken(headWith())).toBe('none');
    expect(presentedToken(headWith('Proxy-Authorization:'))).toBe('malformed');
  });

  it('never prints', () => {
    expect(String(presentedToken(headWith(`Proxy-Authorization: Bearer ${token}`)))).toBe('[secret]');
  });
});
