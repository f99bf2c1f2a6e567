import { expect, it } from 'vitest';
import { cookieValues, formatCookie } from '../../../src/base/http/cookie.ts';

it.each([
  [['a=1'], ['1']],
  [['b=2; a=1; aa=3'], ['1']],
  [
    ['a=1', 'a=2;a=3'],
    ['1', '2', '3'],
  ],
  [['a', 'A=1', 'x a=1'], []],
  [['a='], ['']],
])('the values of a cookie in %j are %j', (fields, expected) => {
  expect(cookieValues({ values: (name) => (name === 'cookie' ? fields : []) }, 'a')).toEqual(expected);
});

it('a cookie is for the whole host, and for no script and no other site', () => {
  const cookie = { name: 'a', value: '1', seconds: 60, isSecure: false };
  expect(formatCookie(cookie)).toBe('a=1; Path=/; Max-Age=60; HttpOnly; SameSite=Strict');
  expect(formatCookie({ ...cookie, isSecure: true })).toBe(
    'a=1; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure',
  );
});
