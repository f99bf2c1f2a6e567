// The grammar of match_hosts: what a pattern is, what is rejected and how to correct it, what picomatch makes of it.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Authority, parseAuthority } from '../../../src/policy/authority/authority.ts';
import {
  compileHostPattern,
  type HostPattern,
  parseHostPattern,
} from '../../../src/policy/match/host-pattern.ts';
import { runs } from '../../support/run-size.ts';

function patternOf(text: string): HostPattern {
  const pattern = parseHostPattern(text);
  if (typeof pattern === 'string') throw new Error(pattern);
  return pattern;
}

function authorityOf(text: string): Authority {
  const authority = parseAuthority(text, 443);
  if (typeof authority === 'string') throw new Error(`${text}: ${authority}`);
  return authority;
}

describe('a host pattern is written as', () => {
  const rows: readonly [text: string, written: string][] = [
    ['api.example.com', 'api.example.com'],
    ['API.Example.COM.', 'api.example.com'],
    ['*.Example.com', '*.example.com'],
    ['*.localhost', '*.localhost'],
    ['api.example.com:8443', 'api.example.com:8443'],
    ['*.example.com:8443', '*.example.com:8443'],
    ['192.0.2.7', '192.0.2.7'],
    ['192.0.2.7:8443', '192.0.2.7:8443'],
    ['[2001:DB8::0007]', '[2001:db8::7]'],
    ['[::1]:443', '[::1]:443'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['_tcp.example.com', '_tcp.example.com'],
  ];
  it.each(rows)('%s -> %s', (text, written) => {
    expect(patternOf(text).text).toBe(written);
    expect(patternOf(written)).toEqual(patternOf(text));
  });
});

describe('a host pattern is rejected, with a correction:', () => {
  const rows: readonly [text: string, reason: RegExp][] = [
    ['', /not be empty/],
    ['*', /every host.*\*\.example\.com/],
    ['**', /every host/],
    ['*:443', /every host/],
    ['!evil.test', /negation/],
    ['{a,b}.x', /one entry for each/],
    ['@(a|b).x', /one entry for each/],
    ['+(a).x', /one entry for each/],
    ['a.test,b.test', /one entry for each/],
    ['ap?.example.com', /one entry for each/],
    ['api.*.com', /one whole label at the start/],
    ['*good.test', /one whole label at the start/],
    ['*.*.test', /one whole label at the start/],
    ['**.example.com', /one whole label at the start/],
    ['api-*.example.com', /one whole label at the start/],
    ['example.*', /one whole label at the start/],
    ['[ab].example.com', /brackets/],
    ['.example.com', /\*\.example\.com/],
    ['https://api.example.com', /not have a scheme/],
    ['api.example.com/v1', /match_paths/],
    ['api.example.com#x', /match_paths/],
    ['api.example.com?x', /not have a query/],
    ['api.example.com?x=1.2', /not have a query/],
    ['a\\b', /match_paths/],
    ['u@api.example.com', /user name/],
    ['bücher.example', /xn--bcher-kva\.example/],
    ['good。test', /good\.test/],
    ['ｇｏｏｄ.test', /good\.test/],
    ['api.example.com:', /port/],
    ['api.example.com:0', /port/],
    ['api.example.com:0443', /port/],
    ['api.example.com:99999', /port/],
    ['api.example.com:https', /port/],
    ['127.1', /four decimal numbers/],
    ['0x7f000001', /four decimal numbers/],
    ['*.0.0.127', /four decimal numbers/],
    ['*.127.0.0.1', /followed by a name/],
    ['*.[::1]', /followed by a name/],
    ['::1', /brackets/],
    ['2001:db8::7', /brackets/],
    ['[fe80::1%25lo]', /zone/],
    ['[fe80::1', /brackets/],
    ['a b', /letters, digits/],
    ['a..b', /letters, digits/],
    ['*.', /letters, digits/],
    ['evil.test\0.good.test', /letters, digits/],
    ['evil.test\n.good.test', /letters, digits/],
    ['-a.test', /letters, digits/],
    [`${'a'.repeat(64)}.test`, /63/],
    [`${'a.'.repeat(127)}test`, /253/],
  ];
  it.each(rows)('%s', (text, reason) => {
    expect(parseHostPattern(text)).toMatch(reason);
  });
});

describe('a compiled pattern', () => {
  const rows: readonly [pattern: string, authority: string, matches: boolean][] = [
    ['good.test', 'good.test', true],
    ['good.test', 'good.test:8443', true],
    ['good.test', 'GOOD.test.', true],
    ['good.test', 'a.good.test', false],
    ['good.test', 'goodxtest', false],
    ['good.test', 'notgood.test', false],
    ['*.good.test', 'a.good.test', true],
    ['*.good.test', 'a.b.c.good.test', true],
    ['*.good.test', 'good.test', false],
    ['*.good.test', 'notgood.test', false],
    ['*.good.test', 'a.good.test.evil.test', false],
    ['*.good.test', 'a.goodxtest', false],
    ['good.test:8443', 'good.test:8443', true],
    ['good.test:8443', 'good.test:443', false],
    ['*.good.test:8443', 'a.good.test:8443', true],
    ['*.good.test:8443', 'a.good.test:443', false],
    ['192.0.2.7', '192.0.2.7', true],
    ['192.0.2.7', '192.0.2.8', false],
    ['[2001:db8::7]', '[2001:DB8:0::7]', true],
    ['[2001:db8::7]', '[2001:db8::8]', false],
    ['[::ffff:192.0.2.7]', '[::ffff:c000:207]', true],
    ['a_b.test', 'a_b.test', true],
    ['a_b.test', 'axb.test', false],
  ];
  it.each(rows)('%s and %s: %s', (pattern, authority, matches) => {
    expect(compileHostPattern(patternOf(pattern))(authorityOf(authority))).toBe(matches);
  });

  it('means the suffix, whatever the host', () => {
    const label = fc.string({ unit: fc.constantFrom(...'ab1-_x'), minLength: 1, maxLength: 4 });
    const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'));
    fc.assert(
      fc.property(name, name, fc.boolean(), (suffix, host, isWildcard) => {
        const pattern = parseHostPattern(isWildcard ? `*.${suffix}` : suffix);
        for (const candidate of [host, `${host}.${suffix}`, suffix, `x${suffix}`]) {
          const authority = parseAuthority(candidate, 443);
          if (typeof pattern === 'string' || typeof authority === 'string') continue;
          const expected = isWildcard ? candidate.endsWith(`.${suffix}`) : candidate === suffix;
          expect(compileHostPattern(pattern)(authority)).toBe(expected);
        }
      }),
      { numRuns: runs(2000) },
    );
  });
});
