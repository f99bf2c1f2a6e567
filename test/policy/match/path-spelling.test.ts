// The most decoded spelling of a path, and the paths that no rule can be applied to.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  cutPath,
  decodePath,
  foldPath,
  partlyDecoded,
  readPath,
} from '../../../src/policy/match/path-spelling.ts';
import { anyCharacter } from '../../support/any-character.ts';
import { runs } from '../../support/run-size.ts';

const mostDecoded = (path: string): string => cutPath(decodePath(path));

describe('the most decoded spelling of', () => {
  const rows: readonly [sent: string, decoded: string][] = [
    ['/v1/x', '/v1/x'],
    ['/', '/'],
    ['/a%2Fb', '/a/b'],
    ['/a%2fb', '/a/b'],
    ['/a%252Fb', '/a/b'],
    ['/a%25252525252Fb', '/a/b'],
    ['/%2525%32%35%32%46', '/'],
    ['/%25%34%31', '/A'],
    ['/a\\b', '/a/b'],
    ['/a%5cb', '/a/b'],
    ['/a//b///c', '/a/b/c'],
    ['/a/%2f/b', '/a/b'],
    ['/a;x=1/b;y', '/a/b'],
    ['/a%3bx=1/b', '/a/b'],
    ['/a;x%2fy/b', '/a/y/b'],
    ['/..;/b', '/../b'],
    ['/a%3fb/c', '/a'],
    ['/a%23b/c', '/a'],
    ['/a;x%253fb/c', '/a'],
    ['/a/%3f', '/a/'],
    ['/100%25', '/100%'],
    ['/%zz', '/%zz'],
    ['/%', '/%'],
    ['/%4', '/%4'],
    ['/k%C3%A4se', '/k\xc3\xa4se'],
    ['/%u0041', '/%u0041'],
    ['/a+b', '/a+b'],
    ['/V1', '/V1'],
    // What follows the star of a pattern is decoded by itself.
    ['%41', 'A'],
  ];
  it.each(rows)('%s is %s', (sent, decoded) => expect(mostDecoded(sent)).toBe(decoded));

  it('a path of 8 KiB of nested escapes is found in one pass', () => {
    expect(mostDecoded(`/%${'25'.repeat(4000)}41`)).toBe('/A');
  });
});

describe('no rule can be applied to', () => {
  const rows: readonly [sent: string, reason: RegExp][] = [
    ['/v1/../admin', /dot segment/],
    ['/v1/./x', /dot segment/],
    ['/v1/..', /dot segment/],
    ['/.', /dot segment/],
    ['/v1/%2e%2e/admin', /dot segment/],
    ['/v1/.%2E', /dot segment/],
    ['/v1/..%2fadmin', /dot segment/],
    ['/v1/..%5cadmin', /dot segment/],
    ['/v1/..\\admin', /dot segment/],
    ['/v1/%252e%252e/admin', /dot segment/],
    ['/v1/%25%32%65%25%32%65/admin', /dot segment/],
    ['/v1/..;/admin', /dot segment/],
    ['/v1/..%3bx/admin', /dot segment/],
    ['/v1;%2f..%2fadmin', /dot segment/],
    ['/v1/.;x', /dot segment/],
    ['/v1/..%3fx', /dot segment/],
    ['/v1/.%23', /dot segment/],
    ['/%3f/.;', /dot segment/],
    ['/v1/..%20/admin', /dot segment/],
    ['/v1/..%20', /dot segment/],
    ['/v1/.%20%20/x', /dot segment/],
    ['/v1/%20../admin', /dot segment/],
    ['/v1/.%20./admin', /dot segment/],
    ['/v1/..%2520;x/admin', /dot segment/],
    [encodeURI('/v1/..\u3000/admin'), /dot segment/],
    [encodeURI('/v1/..\u00a0/admin'), /dot segment/],
    [encodeURI('/v1/\u2024\u2024/admin'), /dot segment/],
    [encodeURI('/v1/.\u2024/admin'), /dot segment/],
    [encodeURI('/v1/\u2024/x'), /dot segment/],
    [encodeURI('/v1/\u2025/admin'), /dot segment/],
    [encodeURI('/v1/\ufe52\ufe52/admin'), /dot segment/],
    [encodeURI('/v1/\uff0e\uff0e/admin'), /dot segment/],
    [encodeURI('/v1/..\u2044admin'), /dot segment/],
    [encodeURI('/v1/..\u2215admin'), /dot segment/],
    [encodeURI('/v1/..\uff0fadmin'), /dot segment/],
    [encodeURI('/v1/..\uff3cadmin'), /dot segment/],
    [encodeURI('/v1/..\ufe68admin'), /dot segment/],
    [encodeURI('/v1/..\u00a5admin'), /dot segment/],
    [encodeURI('/v1/..\uffe6admin'), /dot segment/],
    [encodeURI('/v1/..\u00b4admin'), /dot segment/],
    [encodeURI('/v1/\u066a2e\u066a2e/admin'), /dot segment/],
    [encodeURI('/v1/\uff052e\uff052e/admin'), /dot segment/],
    [encodeURI('/v1/..\ufe6a2fadmin'), /dot segment/],
    [encodeURI('/v1/\uff05ef\uff05bc\uff058e./admin'), /dot segment/],
    [encodeURI('/v1/..\uff1b/admin'), /dot segment/],
    [encodeURI('/v1/..\uff1f'), /dot segment/],
    ['/v1/x;%c0%af..%c0%afadmin', /UTF-8/],
    ['/v1/x;y=%E9', /UTF-8/],
    ['/v1/x;%00', /control/],
    ['/v1/x;%0d%0aEvil:1', /control/],
    ['/v1/x;%7f/y', /control/],
    ['/v1/x;y\\..', /dot segment/],
    ['/v1/x;y%2fz', /encoded delimiter/],
    ['/v1/x;y%252fz', /encoded delimiter/],
    ['/v1/x%3by%5cz', /encoded delimiter/],
    ['/v1/x;y\\z', /encoded delimiter/],
    ['/v1/x;y%3fz', /encoded delimiter/],
    ['/v1/x;y%23', /encoded delimiter/],
    ['/a%00', /control/],
    ['/a%0d%0a', /control/],
    ['/a%7f', /control/],
    ['/a%2500', /control/],
    ['/a\tb', /control/],
    ['/a\0b', /control/],
    ['/%c0%ae%c0%ae/', /UTF-8/],
    ['/%e0%80%ae', /UTF-8/],
    ['/caf%E9', /UTF-8/],
    ['/%ed%a0%80', /UTF-8/],
    ['/%f5%80%80%80', /UTF-8/],
    ['/\xc0\xae', /UTF-8/],
    ['/€', /UTF-8/],
    ['/€%41', /UTF-8/],
    ['/%zz', /escape/],
    ['/%', /escape/],
    ['/a%4', /escape/],
    ['/%u0041', /escape/],
    ['/v1#/x', /fragment/],
    ['v1', /slash/],
    ['', /slash/],
    ['*', /slash/],
    ['http://good.test/v1', /slash/],
    [`/${'a'.repeat(8192)}`, /8192/],
  ];
  it.each(rows)('"%s"', (sent, reason) => expect(readPath(sent)).toMatch(reason));

  const decidable = [
    '/',
    '/a%2Fb',
    '/a//b',
    '/a;x=1',
    '/a%2Fb;x=1/c',
    '/a;x%3D1',
    '/...',
    '/.git',
    '/a..b',
    '/..a',
    '/%25',
    '/k%C3%A4',
    '/k\xc3\xa4',
    '/%F0%9F%98%80',
    '/..%20x',
    '/x%20..',
    '/%20',
    ...[
      '/\u2026',
      '/\u2025x',
      '/\u2100',
      '/\u00a0x',
      '/資料／見積？.pdf',
      '/消費税８％10月',
      '/８％90年',
    ].map(encodeURI),
  ];
  it.each([...decidable, `/${'a'.repeat(8191)}`, '/a%23b', '/a%3Fb'])('but one can to %s', (sent) => {
    expect(readPath(sent)).toMatchObject({ cut: mostDecoded(sent) });
  });
});

describe('under normalization', () => {
  it.each([
    ['/v1/x', '/v1/x'],
    ['/資料', '/資料'],
    ['/\uff56\uff11', '/v1'],
    ['/\uff76\uff9e', '/\u30ac'],
    ['/か\u3099', '/が'],
    ['/a\uff0f\uff0fb', '/a/b'],
    ['/a\uff05\uff12\uff26b', '/a/b'],
    ['/\u2100', '/a/c'],
    ['/８\uff0590年', '/8\ufffd年'],
  ])('%s is %s', (path, folded) => {
    expect(foldPath(bytesOf(path))).toBe(bytesOf(folded));
  });

  it('escapes of lookalikes of escapes are followed a few times only', () => {
    let path = '\uff0e';
    const depths = Array.from({ length: 4 }, () => {
      const readings = readPath(encodeURI(`/a${path}b`));
      const escaped = Buffer.from(path).toString('hex').replace(/../g, '\uff05$&');
      path = escaped;
      return typeof readings === 'string' ? 'refused' : readings.folded;
    });
    expect(depths).toEqual(['/a.b', '/a.b', '/a.b', 'refused']);
  });

  it('the most expensive path costs a few milliseconds', () => {
    const path = `/a${encodeURI('\u0301'.repeat(680) + '\u0316'.repeat(680))}`;
    const before = process.cpuUsage();
    for (let i = 0; i < 100; i += 1) readPath(path);
    expect(process.cpuUsage(before).user / 100).toBeLessThan(5_000);
  });
});

function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1');
}

describe('a path decoded in part', () => {
  it.each<[sent: string, texts: readonly string[]]>([
    ['/a/b', ['/a/b']],
    ['//a//b', ['/a/b']],
    ['//a%2fb', ['/a%2fb', '/a/b']],
    ['/a\\b', ['/a\\b', '/a/b']],
    ['/a%5cb', ['/a%5cb', '/a\\b', '/a/b']],
    ['/a%252fb%2fc', ['/a%252fb%2fc', '/a%2fb/c', '/a/b/c']],
    ['/a;x//b', ['/a;x/b', '/a/b']],
    ['/%2525252541', ['/%2525252541', '/%25252541', '/%252541', '/%2541']],
  ])('%s is one of %s', (sent, texts) => expect(partlyDecoded(sent)).toEqual(texts));

  it('costs a few passes over the path', () => {
    const before = process.cpuUsage();
    for (let i = 0; i < 50; i += 1) partlyDecoded(`/${'%5c;'.repeat(2_047)}`);
    expect(process.cpuUsage(before).user / 50).toBeLessThan(10_000);
  });
});

describe('whatever the path,', () => {
  const unit = fc.oneof(
    fc.constantFrom(
      ...['%', '2', '5', 'e', 'f', '/', '\\', ';', '.', 'a'],
      ...['%25', '%2f', '%5c', '%3b', '%2e', '%3f', '%23'],
    ),
    anyCharacter,
  );
  const paths = fc.array(unit, { maxLength: 30 }).map((parts) => `/${parts.join('')}`);

  it('decoding the most decoded spelling changes nothing', () => {
    fc.assert(
      fc.property(paths, (path) => {
        const decoded = mostDecoded(path);
        expect(mostDecoded(decoded)).toBe(decoded);
      }),
      { numRuns: runs(10_000) },
    );
  });

  it('it is where decoding over and over ends', () => {
    const once = (path: string): string =>
      path.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    fc.assert(
      fc.property(paths, (path) => {
        let decoded = path;
        while (once(decoded) !== decoded) decoded = once(decoded);
        const expected = decoded
          .replaceAll('\\', '/')
          .replace(/[?#][^]*/, '')
          .replace(/;[^/]*/g, '')
          .replace(/\/+/g, '/');
        expect(mostDecoded(path)).toBe(expected);
      }),
      { numRuns: runs(10_000) },
    );
  });

  it('parameters in many segments cost a few passes over the path', () => {
    const path = `/;${'/a'.repeat(4_090)}`;
    const before = process.cpuUsage();
    for (let i = 0; i < 1_000; i += 1) readPath(path);
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(2_500);
  });

  it('a path that rules apply to has no dot segment at any depth of decoding', () => {
    fc.assert(
      fc.property(paths, (path) => {
        if (typeof readPath(path) === 'string') return;
        let decoded = path;
        for (let depth = 0; depth < 12; depth += 1) {
          const segments = decoded.split(/[/\\]/).map((segment) => segment.replace(/[;?#][^]*$/, ''));
          expect(segments.includes('..') || segments.includes('.')).toBe(false);
          decoded = decoded.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
            String.fromCharCode(Number.parseInt(hex, 16)),
          );
        }
      }),
      { numRuns: runs(10_000) },
    );
  });
});
