// What is decided from a head alone, and the canonical head, byte for byte.
import { describe, expect, it } from 'vitest';
import { defaultLimits, headLimitsOf } from '../../src/gateway/limits.ts';
import { Refusal } from '../../src/gateway/refusal.ts';
import { canonicalHead, planRequest, type RequestPlan } from '../../src/gateway/request-plan.ts';
import { compileNames } from '../../src/http1/field-name.ts';
import { isHeadError } from '../../src/http1/head-error.ts';
import { parseRequestHead } from '../../src/http1/head-parser.ts';

function plan(...lines: readonly string[]): RequestPlan | Refusal {
  const bytes = Buffer.from([...lines, '', ''].join('\r\n'), 'latin1');
  const head = parseRequestHead(bytes, 0, headLimitsOf(defaultLimits));
  if (head === undefined || isHeadError(head)) throw new Error('no head');
  return planRequest(head);
}

const change = {
  withheld: compileNames(['cookie']),
  withoutCookies: new Set<string>(),
  clientAddress: '10.0.0.1',
  scheme: 'https',
} as const;

const OWN = 'X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: a\r\nX-Forwarded-Proto: https\r\n\r\n';

describe('a head is refused', () => {
  it.each([
    ['CONNECT', ['CONNECT a:1 HTTP/1.1', 'Host: a'], 'method_refused'],
    ['TRACE', ['TRACE / HTTP/1.1', 'Host: a'], 'method_refused'],
    ['a method that node:http does not know', ['get / HTTP/1.1', 'Host: a'], 'method_refused'],
    ['an absolute target', ['GET http://a/ HTTP/1.1', 'Host: a'], 'target_form_refused'],
    ['an asterisk', ['OPTIONS * HTTP/1.1', 'Host: a'], 'target_form_refused'],
    ['no Host', ['GET / HTTP/1.1'], 'host_invalid'],
    ['no Host on HTTP/1.0', ['GET / HTTP/1.0'], 'host_invalid'],
    ['two Hosts', ['GET / HTTP/1.1', 'Host: a', 'Host: a'], 'host_invalid'],
    ['a Host with a path', ['GET / HTTP/1.1', 'Host: a/b'], 'host_invalid'],
    ['a Host with userinfo', ['GET / HTTP/1.1', 'Host: u@a'], 'host_invalid'],
    ['a nominated Host', ['GET / HTTP/1.1', 'Host: a', 'Connection: host'], 'malformed_request'],
    [
      'two framings',
      ['POST / HTTP/1.1', 'Host: a', 'Content-Length: 1', 'Transfer-Encoding: chunked'],
      'malformed_request',
    ],
    [
      'an upgrade with a body',
      ['GET / HTTP/1.1', 'Host: a', 'Connection: upgrade', 'Upgrade: websocket', 'Content-Length: 1'],
      'malformed_request',
    ],
    [
      'another expectation',
      ['POST / HTTP/1.1', 'Host: a', 'Expect: 200-ok', 'Content-Length: 1'],
      'expectation_failed',
    ],
  ])('for %s', (_, lines, code) => expect(plan(...lines)).toMatchObject({ code }));
});

describe('the canonical head', () => {
  it.each([
    [
      'keeps the order and case of fields',
      ['X-B: 1', 'x-a:2'],
      'GET / HTTP/1.1\r\nHost: a\r\nX-B: 1\r\nx-a:2\r\n',
    ],
    [
      'drops fields of one hop and Expect',
      ['Connection: x-c', 'X-C: 1', 'TE: trailers', 'Expect: 100-continue'],
      'GET / HTTP/1.1\r\nHost: a\r\n',
    ],
    [
      'drops forwarding fields in every spelling',
      ['X_Forwarded_For: 1', 'x-forwarded-anything: 1', 'FORWARDED: 1', 'X-Real_IP: 1'],
      'GET / HTTP/1.1\r\nHost: a\r\n',
    ],
    [
      'keeps a field that only begins alike',
      ['X-Forwardes: 1', 'X-Forwarded-: 1'],
      'GET / HTTP/1.1\r\nHost: a\r\nX-Forwardes: 1\r\nX-Forwarded-: 1\r\n',
    ],
    ['drops what is withheld', ['Cookie: a=1', 'COOKIE: b=2'], 'GET / HTTP/1.1\r\nHost: a\r\n'],
  ])('%s', (_, fields, wanted) => {
    const made = plan('GET / HTTP/1.1', 'Host: a', ...fields);
    expect(made instanceof Refusal ? made.code : String(canonicalHead(made, change))).toBe(wanted + OWN);
  });

  it('keeps HTTP/1.0', () => {
    const made = plan('GET /a HTTP/1.0', 'Host: a');
    expect(made instanceof Refusal ? made.code : String(canonicalHead(made, change))).toMatch(
      /^GET \/a HTTP\/1\.0\r\n/,
    );
  });

  it('removes cookies by name', () => {
    const made = plan('GET / HTTP/1.1', 'Host: a', 'Cookie: a=1;s = x ; b', 'Cookie: s=2');
    const passing = { ...change, withheld: compileNames([]), withoutCookies: new Set(['s']) };
    expect(made instanceof Refusal ? made.code : String(canonicalHead(made, passing))).toContain(
      '\r\nCookie: a=1; b\r\nX-F',
    );
  });

  it('has the cookies that the owner makes of those that are left, in each field', () => {
    const made = plan('GET / HTTP/1.1', 'Host: a', 'Cookie: x-a=1; s=2; b=3', 'Cookie: s=4', 'Cookie: y=5');
    const mapCookies = (value: string): string => (value.startsWith('x-') ? value.slice(2) : '');
    const passing = { ...change, withheld: compileNames([]), withoutCookies: new Set(['s']), mapCookies };
    const head = made instanceof Refusal ? made.code : String(canonicalHead(made, passing));
    expect(head.match(/^cookie.*$/gim)).toEqual(['Cookie: a=1; b=3']);
  });
});
