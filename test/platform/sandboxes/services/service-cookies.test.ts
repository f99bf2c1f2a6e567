import { describe, expect, it } from 'vitest';
import {
  serviceCookie,
  serviceCookiesIn,
  toBoxCookies,
} from '../../../../src/platform/sandboxes/services/service-cookies.ts';
import * as site from '../../../../src/gateway/site/site-cookies.ts';
import { type ServicePlace, siteOf } from '../../../../src/platform/sandboxes/services/service-address.ts';
import { BOX, byHost, byOtherPath, byPath, byPlainPath } from './service-places.ts';

const toClientCookie = (place: ServicePlace, field: string) => site.toClientCookie(siteOf(place), field);

describe('our cookie', () => {
  it('is bound to the host, or to the path, of the service', () => {
    expect(serviceCookie(byHost, 'x', 60)).toBe(
      '__Host-sallyport-service=x; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure',
    );
    expect(serviceCookie(byPath, 'x', 60)).toBe(
      `__Secure-sallyport-service=x; Path=/services/${BOX}/3000; Max-Age=60; HttpOnly; SameSite=Lax; Secure`,
    );
    expect(serviceCookie(byPlainPath, 'x', 60)).toBe(
      `sallyport-service=x; Path=/services/${BOX}/3000; Max-Age=60; HttpOnly; SameSite=Lax`,
    );
  });

  it('is found by its whole name, every time', () => {
    const fields = ['a=1; __Host-sallyport-service=x;b=2', '__Host-sallyport-service = y'];
    expect(serviceCookiesIn(byHost, fields)).toEqual(['x', 'y']);
    expect(serviceCookiesIn(byPath, fields)).toEqual([]);
    expect(serviceCookiesIn(byHost, ['x__Host-sallyport-service=x', '__Host-sallyport-service'])).toEqual([]);
  });

  it('never reaches the box, nor does a session of the platform', () => {
    const field =
      'a=1; __Host-sallyport-service=x; __Secure-Sallyport-service=x; sallyport=s; __Host-sallyport=s; b';
    expect(toBoxCookies(byHost, field)).toBe('a=1; b');
    expect(toBoxCookies(byPath, field)).toBe('');
  });

  it('is never set by the box', () => {
    for (const name of ['__Host-sallyport-service', 'SALLYPORT-service', 'sallyport', '__host-sallyport'])
      for (const place of [byHost, byPath])
        expect(toClientCookie(place, `${name}=evil; Path=/`)).toBeUndefined();
    // A browser sends what has no name as the value alone.
    for (const field of ['=__Host-sallyport-service=evil', '__Host-sallyport-service', ' = x', ''])
      expect(toClientCookie(byHost, field)).toBeUndefined();
  });
});

describe('a cookie of the box', () => {
  it('by host is that of the host alone', () => {
    expect(toClientCookie(byHost, 'a=b=c; Path=/x; Domain=.example.com; Secure; DOMAIN = y')).toBe(
      'a=b=c; Path=/x; Secure',
    );
    expect(toClientCookie(byHost, '__Host-session=1; Secure; Path=/')).toBe(
      '__Host-session=1; Secure; Path=/',
    );
  });

  it('by path has a name and a path of its service', () => {
    const name = `box-${BOX}-3000-a`;
    const prefix = `/services/${BOX}/3000`;
    expect(toClientCookie(byPath, 'a=1')).toBe(`${name}=1; Path=${prefix}`);
    expect(toClientCookie(byPath, 'a=1; Path=/; HttpOnly; Domain=x')).toBe(
      `${name}=1; HttpOnly; Path=${prefix}`,
    );
    expect(toClientCookie(byPath, 'a=1; path=/x/y; Path=relative; PATH=/last')).toBe(
      `${name}=1; Path=${prefix}/last`,
    );
    expect(toClientCookie(byPath, 'a=1; Path=//evil')).toBe(`${name}=1; Path=${prefix}//evil`);
  });

  it('by path reaches no other service, and comes back under its own name', () => {
    const sent = [toClientCookie(byPath, 'a=1'), toClientCookie(byOtherPath, 'b=2'), 'c=3']
      .map((field) => field?.split(';')[0])
      .join('; ');
    expect(toBoxCookies(byPath, sent)).toBe('a=1');
    expect(toBoxCookies(byOtherPath, sent)).toBe('b=2');
  });
});
