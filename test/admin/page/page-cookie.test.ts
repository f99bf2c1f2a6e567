import { describe, expect, it } from 'vitest';
import {
  isOwnRead,
  originOfForm,
  sessionCookieOf,
  setSessionCookie,
} from '../../../src/admin/page/page-cookie.ts';

function head(fields: Readonly<Record<string, readonly string[]>> = {}, host = 'localhost:3129') {
  return { host, values: (name: string): readonly string[] => fields[name] ?? [] };
}

describe('the cookie', () => {
  it('names the port, because browsers send it to every port of the host', () => {
    expect(setSessionCookie(head(), false, 'id')).toBe(
      'sallyport-admin-3129=id; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict',
    );
    expect(setSessionCookie(head({}, 'admin.test'), true, 'id')).toBe(
      '__Host-sallyport-admin-443=id; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure',
    );
    expect(setSessionCookie(head(), false)).toContain('sallyport-admin-3129=; Path=/; Max-Age=0;');
  });

  it.each([
    ['alone', ['sallyport-admin-3129=a'], { text: 'a', isTls: false }],
    ['among others', ['x=1; sallyport-admin-3129=a; y=2'], { text: 'a', isTls: false }],
    ['in a second field', ['x=1', 'sallyport-admin-3129=a'], { text: 'a', isTls: false }],
    ['of another port', ['sallyport-admin-3128=a'], undefined],
    ['with the prefix of another name', ['sallyport-admin-31290=a'], undefined],
    ['twice', ['sallyport-admin-3129=a; sallyport-admin-3129=b'], undefined],
    [
      'with TLS beside one that any port can set',
      ['sallyport-admin-3129=a; __Host-sallyport-admin-3129=b'],
      { text: 'b', isTls: true },
    ],
  ])('is read %s', (_, cookie, expected) => {
    expect(sessionCookieOf(head({ cookie }))).toEqual(expected);
  });
});

it.each([
  ['this page', ['http://localhost:3129'], ['same-origin'], { isTls: false }],
  ['this page behind TLS', ['https://localhost:3129'], ['same-origin'], { isTls: true }],
  ['a browser that sends no Sec-Fetch-Site', ['http://localhost:3129'], [], { isTls: false }],
  ['another port', ['http://localhost:8080'], ['same-site'], undefined],
  ['another name of this host', ['http://127.0.0.1:3129'], ['cross-site'], undefined],
  ['a page that hides its origin', ['null'], ['cross-site'], undefined],
  ['a page whose two fields disagree', ['http://localhost:3129'], ['cross-site'], undefined],
  ['two origins', ['http://localhost:3129', 'http://localhost:3129'], [], undefined],
  ['nobody knows where', [], [], undefined],
  ['the browser itself', [], ['none'], undefined],
])('a form from %s', (_, origin, site, expected) => {
  expect(originOfForm(head({ origin, 'sec-fetch-site': site }))).toEqual(expected);
});

it.each([
  ['none', true],
  ['same-origin', true],
  ['same-site', false],
  ['cross-site', false],
])('a read whose Sec-Fetch-Site is %s is own: %s', (site, isOwn) => {
  expect(isOwnRead(head({ 'sec-fetch-site': [site] }))).toBe(isOwn);
});
