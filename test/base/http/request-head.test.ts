import { describe, expect, it } from 'vitest';
import { readRequestHead, type RequestHead, requestIdOf } from '../../../src/base/http/request-head.ts';

function read(
  fields: readonly string[],
  start: { url?: string; method?: string; httpVersion?: string } = {},
): RequestHead {
  const rawHeaders = fields.flatMap((field) => field.split(/(?<=^[^:]*):/));
  return readRequestHead({ method: 'PUT', url: '/a?b', httpVersion: '1.1', ...start, rawHeaders });
}

describe('a request head', () => {
  it('keeps every value of a repeated field, in order', () => {
    const head = read(['X-A: 1', 'x-b: 2', 'x-a:  3 ']);
    expect([head.values('x-a'), head.field('x-a'), head.values('x-c'), head.field('x-c')]).toEqual([
      ['1', '3'],
      '1, 3',
      [],
      undefined,
    ]);
    expect(head.names).toEqual(['x-a', 'x-b']);
  });

  it.each([
    [['Host: A.test:80'], 'a.test:80'],
    [['Host: [::1]:3129'], '[::1]:3129'],
    [[], undefined],
    [['Host: a', 'Host: a'], undefined],
    [['Host: a@b'], undefined],
    [['Host: a, b'], undefined],
    [['Host: '], undefined],
  ])('with %j has the host %s', (fields, host) => {
    expect(read(fields).host).toBe(host);
  });

  it.each([
    [[], '1.1', true, false],
    [['Content-Length: 0'], '1.1', true, false],
    [['Content-Length: 5'], '1.1', true, true],
    [['Transfer-Encoding: Chunked'], '1.1', true, true],
    [['Transfer-Encoding: chunked'], '1.0', false, true],
    [['Transfer-Encoding: gzip, chunked'], '1.1', false, true],
    [['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], '1.1', false, true],
    [['Transfer-Encoding: chunked', 'Content-Length: 5'], '1.1', false, true],
  ])(
    'with %j over HTTP/%s is framed plainly: %s, and has a body: %s',
    (fields, httpVersion, isPlain, hasBody) => {
      const head = read(fields, { httpVersion });
      expect([head.isFramedPlainly, head.hasBody]).toEqual([isPlain, hasBody]);
    },
  );

  it.each([
    ['GET', '/a', true],
    ['GET', 'http://a/', false],
    ['OPTIONS', '*', false],
    ['CONNECT', 'a:443', false],
    ['CONNECT', '/a', false],
  ])('%s %s is in origin-form: %s', (method, url, isOrigin) => {
    expect(read([], { method, url }).isOriginForm).toBe(isOrigin);
  });

  it.each([
    [[], '1.1', false, false],
    [['Expect: 100-Continue'], '1.1', true, false],
    [['Expect: 100-continue'], '1.0', false, false],
    [['Expect: 200-ok'], '1.1', true, true],
  ])(
    'with %j over HTTP/%s expects a 100: %s, or something unknown: %s',
    (fields, httpVersion, expects, isUnknown) => {
      const head = read(fields, { httpVersion });
      expect([head.expectsContinue, head.hasUnknownExpectation]).toEqual([expects, isUnknown]);
    },
  );

  it('passes on one well-formed X-Request-Id, else makes a new one', () => {
    expect(requestIdOf(read(['X-Request-Id: a.B_1-c']))).toBe('a.B_1-c');
    for (const fields of [[], ['X-Request-Id: a b'], ['X-Request-Id: a', 'X-Request-Id: a']])
      expect(requestIdOf(read(fields))).toMatch(/^[0-9a-f-]{36}$/);
  });
});
