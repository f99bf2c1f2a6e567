// Names from bytes: any case, no neighbour, and the reading of origins that fold `_` into `-`.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  Field,
  fieldIdOf,
  isFieldNamed,
  compileNames,
  isFieldNamedLoosely,
  isSameName,
} from '../../src/http1/field-name.ts';
import { token } from './arbitraries.ts';

const known: readonly [name: string, id: number][] = [
  ['Host', Field.host],
  ['Content-Length', Field.contentLength],
  ['Transfer-Encoding', Field.transferEncoding],
  ['Connection', Field.connection],
  ['Keep-Alive', Field.keepAlive],
  ['Proxy-Connection', Field.proxyConnection],
  ['Proxy-Authorization', Field.proxyAuthorization],
  ['Proxy-Authenticate', Field.proxyAuthenticate],
  ['Proxy-Authentication-Info', Field.proxyOther],
  ['Proxy-', Field.proxyOther],
  ['TE', Field.te],
  ['Trailer', Field.trailer],
  ['Upgrade', Field.upgrade],
  ['Expect', Field.expect],
  ['Alt-Svc', Field.altSvc],
  ['Authorization', Field.authorization],
  ['WWW-Authenticate', Field.wwwAuthenticate],
];
const unknown: readonly string[] = [
  '',
  'H',
  'Hosts',
  'ost',
  'Hos\xf4',
  'Content_Length',
  'Proxy',
  'Proxy_Auth',
  'XProxy-A',
];

function idOf(name: string): number {
  const bytes = Buffer.from(`:${name}:`, 'latin1');
  return fieldIdOf(bytes, 1, bytes.length - 1);
}

describe('fieldIdOf', () => {
  it.each(known)('knows %s in any case', (name, id) => {
    expect([name, name.toLowerCase(), name.toUpperCase()].map(idOf)).toEqual([id, id, id]);
  });

  it.each(unknown)('does not know %j', (name) => expect(idOf(name)).toBe(Field.other));

  it('agrees with a map of lower-case names on any token', () => {
    const ids = new Map(known.map(([name, id]) => [name.toLowerCase(), id]));
    const near = fc.constantFrom(...known.map(([name]) => name)).map((name) => name.replace('e', 'E'));
    fc.assert(
      fc.property(fc.oneof(token, near), (name) => {
        const lower = name.toLowerCase();
        expect(idOf(name)).toBe(
          ids.get(lower) ?? (lower.startsWith('proxy-') ? Field.proxyOther : Field.other),
        );
      }),
    );
  });
});

describe('comparison of names', () => {
  const bytes = Buffer.from('X-Api_Key:x-aPI_kEY', 'latin1');

  it('minds no case', () => {
    expect(isFieldNamed(bytes, 0, 9, 'x-api_key')).toBe(true);
    expect(isSameName(bytes, 0, 9, 10, 19)).toBe(true);
  });

  it('minds underscores, length and every byte', () => {
    expect(isFieldNamed(bytes, 0, 9, 'x-api-key')).toBe(false);
    expect(isFieldNamed(bytes, 0, 8, 'x-api_key')).toBe(false);
    expect(isSameName(bytes, 0, 9, 10, 18)).toBe(false);
    expect(isSameName(bytes, 0, 8, 11, 19)).toBe(false);
  });

  it('with many names at once is that with each of them, loosely', () => {
    const names = ['via', 'x_api-key', 'x-real-ip', 'x-realm-i'];
    const isOne = compileNames(names);
    const spellings = [...names, 'VIA', 'X-Api_Key', 'x_real_ip', 'vib', 'wia', 'via2', '_-api-key', 'x'];
    for (const spelling of spellings) {
      const bytes = Buffer.from(spelling);
      const expected = names.some((name) => isFieldNamedLoosely(bytes, 0, bytes.length, name));
      expect([spelling, isOne(bytes, 0, bytes.length)]).toEqual([spelling, expected]);
    }
  });

  it('minds no underscore when it is loose', () => {
    expect(isFieldNamedLoosely(bytes, 0, 9, 'x_api-key')).toBe(true);
    expect(isFieldNamedLoosely(bytes, 0, 9, 'x-api-kez')).toBe(false);
    expect(isFieldNamedLoosely(bytes, 0, 8, 'x-api-key')).toBe(false);
  });
});
