import { describe, expect, it } from 'vitest';
import type { ServicePlace } from '../../../../src/platform/sandboxes/services/service-address.ts';
import { toClientFields } from '../../../../src/platform/sandboxes/services/service-response.ts';
import { BOX, byHost, byPath } from './service-places.ts';

function changed(place: ServicePlace, ...fields: readonly (readonly [string, string])[]) {
  const result = toClientFields(place, fields.flat());
  return result.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${result[at + 1]}`] : []));
}

const VARY = 'Vary: Cookie, X-Langsmith-Sandbox-Service-Token';
const prefix = `/services/${BOX}/3000`;

describe('the fields of a response', () => {
  it('say nothing for the origin, the domain or other connections', () => {
    const fields = [
      'Clear-Site-Data',
      'strict-transport-security',
      'ALT-SVC',
      'NEL',
      'Report-To',
      'Access-Control-Allow-Credentials',
    ].map((name) => [name, 'x'] as const);
    expect(changed(byHost, ...fields, ['Content-Type', 'text/html'])).toEqual([
      'Content-Type: text/html',
      VARY,
    ]);
  });

  it('by path make each page an origin of its own', () => {
    expect(changed(byPath, ['Service-Worker-Allowed', '/'], ['Content-Security-Policy', 'x'])).toEqual([
      'Content-Security-Policy: x',
      'Content-Security-Policy: sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts',
      VARY,
    ]);
    expect(changed(byHost, ['Service-Worker-Allowed', '/'])).toEqual(['Service-Worker-Allowed: /', VARY]);
  });

  it('by path register nothing for the origin', () => {
    for (const name of [
      'Set-Login',
      'Secure-Session-Registration',
      'Sec-Session-Registration',
      'Use-As-Dictionary',
    ])
      expect(changed(byPath, [name, 'x'])).not.toContain(`${name}: x`);
  });

  it('set cookies of the service alone', () => {
    expect(changed(byPath, ['Set-Cookie', 'a=1'], ['set-cookie', 'sallyport=1'])[0]).toBe(
      `Set-Cookie: box-${BOX}-3000-a=1; Path=${prefix}`,
    );
    expect(changed(byHost, ['Set-Cookie', 'a=1; Domain=x'], ['set-cookie', '__Host-sallyport=1'])).toEqual([
      'Set-Cookie: a=1',
      VARY,
    ]);
  });
});

describe('a redirect', () => {
  const locate = (place: ServicePlace, location: string) =>
    changed(place, ['Location', location])[0]?.replace('Location: ', '');

  it('by path stays within the service', () => {
    expect(locate(byPath, '/login?x')).toBe(`${prefix}/login?x`);
    expect(locate(byPath, `${prefix}/login`)).toBe(`${prefix}/login`);
    expect(locate(byPath, '/\\evil.com')).toBe(`${prefix}/\\evil.com`);
    for (const base of [
      'http://127.0.0.1:3000',
      'http://LOCALHOST:3000',
      'https://gw.example.com',
      '//[::1]:3000',
    ])
      expect(locate(byPath, `${base}/a`)).toBe(`https://gw.example.com${prefix}/a`);
    expect(locate(byPath, 'http://localhost:3000')).toBe(`https://gw.example.com${prefix}/`);
  });

  it('by host stays within the service', () => {
    expect(locate(byHost, '/login')).toBe('/login');
    expect(locate(byHost, 'http://127.0.0.1:3000/a')).toBe(`${byHost.origin}/a`);
    expect(locate(byHost, `http://${byHost.authority}/a?b#c`)).toBe(`${byHost.origin}/a?b#c`);
  });

  it('to another place is not changed', () => {
    for (const location of [
      'next',
      '?page=2',
      '',
      'https://example.com/',
      '//example.com/',
      'mailto:a@b',
      'http://localhost:3001/',
    ])
      for (const place of [byHost, byPath]) expect(locate(place, location)).toBe(location);
  });
});
