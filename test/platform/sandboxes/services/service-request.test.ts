import { describe, expect, it } from 'vitest';
import type { ServicePlace } from '../../../../src/platform/sandboxes/services/service-address.ts';
import {
  mayPassAuthorization,
  passedFields,
  readServiceCredential,
} from '../../../../src/platform/sandboxes/services/service-request.ts';
import { byHost, byPath } from './service-places.ts';

type Fields = Readonly<Record<string, string | readonly string[]>>;
type Asked = { readonly method?: string; readonly target?: string; readonly isUpgrade?: boolean };

function read(
  place: ServicePlace,
  fields: Fields,
  { method = 'GET', target = '/', isUpgrade = false }: Asked = {},
) {
  const values = (name: string): readonly string[] => [fields[name] ?? []].flat();
  return readServiceCredential(place, { method, target, isUpgrade, values });
}

const cookie = '__Host-sallyport-service=c';
const own = byHost.origin;

describe('a request authenticates', () => {
  it('with the token, before a cookie', () => {
    const token = { 'x-langsmith-sandbox-service-token': 't', cookie };
    expect(read(byHost, token)).toEqual({ kind: 'token', text: 't' });
    expect(read(byHost, token, { method: 'POST' })).toEqual({ kind: 'token', text: 't' });
    const two = { 'x-langsmith-sandbox-service-token': ['t', 'u'] };
    expect(read(byHost, two)).toMatchObject({ kind: 'refused', code: 'unauthenticated' });
    expect(read(byHost, {})).toEqual({ kind: 'none' });
  });

  it('with a code, which is taken out of the address, and never forwarded', () => {
    const code = (target: string, asked: Asked = {}) =>
      read(byHost, { 'x-langsmith-sandbox-service-token': 't' }, { target, ...asked });
    expect(code('/?sallyport_code=c')).toEqual({ kind: 'code', text: 'c', target: '/' });
    expect(code('/a?x=%20&sallyport_code=c&y')).toEqual({ kind: 'code', text: 'c', target: '/a?x=%20&y' });
    expect(code('/?sallyport_code=c', { method: 'POST' })).toMatchObject({ kind: 'refused' });
    expect(code('/?sallyport_code=c', { isUpgrade: true })).toMatchObject({ kind: 'refused' });
    expect(code('/?sallyport_code=c&sallyport_code=d')).toMatchObject({ kind: 'refused' });
    expect(code('/sallyport_code=c?x=sallyport_code=c')).toEqual({ kind: 'token', text: 't' });
  });

  it('with one cookie: of two, somebody else has set one', () => {
    expect(read(byHost, { cookie })).toEqual({ kind: 'cookie', text: 'c' });
    expect(read(byHost, { cookie: [cookie, cookie] })).toMatchObject({ code: 'unauthenticated' });
  });
});

describe('with a cookie', () => {
  const kind = (fields: Fields, asked: Asked = {}, place = byHost): string =>
    read(place, { cookie: place === byHost ? cookie : '__Secure-sallyport-service=c', ...fields }, asked)
      .kind;
  const navigation = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };

  it('pages of the service may read and write', () => {
    expect(kind({ 'sec-fetch-site': 'same-origin' })).toBe('cookie');
    for (const method of ['POST', 'DELETE', 'OPTIONS']) {
      expect(kind({ 'sec-fetch-site': 'same-origin', origin: own }, { method })).toBe('cookie');
      expect(kind({ origin: own }, { method })).toBe('cookie');
    }
    expect(kind({ origin: own }, { isUpgrade: true })).toBe('cookie');
  });

  it('a user may come from anywhere, to a whole page', () => {
    for (const site of ['none', 'cross-site', 'same-site'])
      for (const method of ['GET', 'HEAD'])
        expect(kind({ 'sec-fetch-site': site, ...navigation }, { method })).toBe('cookie');
    expect(kind({ 'sec-fetch-site': 'cross-site', ...navigation }, {}, byPath)).toBe('cookie');
  });

  it('pages of other origins may do nothing', () => {
    const sibling = 'https://3000--22222222-2222-4222-8222-222222222222.boxes.example.com';
    for (const site of ['same-site', 'cross-site']) {
      expect(kind({ 'sec-fetch-site': site })).toBe('refused');
      expect(kind({ 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors' })).toBe('refused');
      expect(kind({ 'sec-fetch-site': site, ...navigation, 'sec-fetch-dest': 'iframe' })).toBe('refused');
      expect(kind({ 'sec-fetch-site': site, origin: own }, { method: 'POST' })).toBe('refused');
    }
    for (const origin of [sibling, 'null', 'http://example.com', own.replace('https', 'http')]) {
      expect(kind({ origin })).toBe('refused');
      expect(kind({ origin }, { method: 'POST' })).toBe('refused');
      expect(kind({ origin }, { isUpgrade: true })).toBe('refused');
      expect(kind({ origin: [own, origin] }, { isUpgrade: true })).toBe('refused');
    }
  });

  it('what does not say where it comes from may read alone', () => {
    expect(kind({})).toBe('cookie');
    expect(kind({}, { method: 'POST' })).toBe('refused');
    expect(kind({}, { isUpgrade: true })).toBe('refused');
    expect(kind({ 'sec-fetch-site': 'same-origin' }, { isUpgrade: true })).toBe('refused');
  });

  it('pages by path, whose origin is none, may not write', () => {
    expect(kind({ origin: 'null', 'sec-fetch-site': 'cross-site' }, { method: 'POST' }, byPath)).toBe(
      'refused',
    );
  });
});

describe('Authorization', () => {
  const key = `sp_sk_${'a'.repeat(49)}`;

  it('passes with the credentials of a service', () => {
    for (const value of ['Bearer abc', 'Basic dXNlcjpwYXNz', 'Digest username="x"', 'Bearer sp_sk_short'])
      expect(mayPassAuthorization([value])).toBe(true);
    expect(mayPassAuthorization([])).toBe(true);
  });

  it('passes by path with a token alone: a browser sends a password to every path of the origin', () => {
    const basic = ['Basic dXNlcjpwYXNz'];
    const both = ['cookie', 'authorization'];
    expect(passedFields(byPath, { kind: 'cookie' }, basic)).toEqual(['cookie']);
    expect(passedFields(byPath, { kind: 'token' }, basic)).toEqual(both);
    for (const kind of ['cookie', 'token'] as const) {
      expect(passedFields(byHost, { kind }, basic)).toEqual(both);
      expect(passedFields(byHost, { kind }, [`Bearer ${key}`])).toEqual(['cookie']);
    }
  });

  it('does not pass with a key of the platform, in any form', () => {
    const forms = [
      `Bearer ${key}`,
      `bearer  ${key.replace('sk', 'pt')}`,
      key,
      `Token token="${key.replace('sk', 'sb')}"`,
      `Basic ${Buffer.from(`user:${key.replace('sk', 'sv')}`).toString('base64')}`,
    ];
    for (const value of forms) expect(mayPassAuthorization([value])).toBe(false);
    expect(mayPassAuthorization(['Bearer abc', `Bearer ${key}`])).toBe(false);
  });
});
