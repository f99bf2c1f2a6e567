// What is decided from a head alone: method, framing, expectation, upgrade, hop-by-hop fields.
import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../../src/proxy/refusal.ts';
import { type RequestPlan, planRequest } from '../../../src/proxy/gate/request-plan.ts';
import { authorityOf, requestHead } from '../request-head.ts';

const tunnel = authorityOf('a.test:443');

function plan(line: string, ...fields: string[]): ReturnType<typeof planRequest> {
  return planRequest(requestHead(line, 'Host: a.test', ...fields), tunnel, 'https');
}

function planned(line: string, ...fields: string[]): RequestPlan {
  const made = plan(line, ...fields);
  if (isRefusal(made)) throw new Error(`${line}: ${made.refused} ${made.cause}`);
  return made;
}

describe('a head that is refused', () => {
  const rows: readonly (readonly [string, string, readonly string[], string, number])[] = [
    ['TRACE, which echoes the injected fields', 'TRACE / HTTP/1.1', [], 'method_refused', 405],
    ['TRACK', 'TRACK / HTTP/1.1', [], 'method_refused', 405],
    ['CONNECT inside a tunnel', 'CONNECT b.test:443 HTTP/1.1', [], 'method_refused', 405],
    [
      'length and coding',
      'POST / HTTP/1.1',
      ['Content-Length: 5', 'Transfer-Encoding: chunked'],
      'malformed_request',
      400,
    ],
    [
      'two lengths that agree',
      'POST / HTTP/1.1',
      ['Content-Length: 5', 'Content-Length: 5'],
      'malformed_request',
      400,
    ],
    ['a list of lengths', 'POST / HTTP/1.1', ['Content-Length: 5, 5'], 'malformed_request', 400],
    ['a signed length', 'POST / HTTP/1.1', ['Content-Length: +5'], 'malformed_request', 400],
    [
      'a coding before chunked',
      'POST / HTTP/1.1',
      ['Transfer-Encoding: gzip, chunked'],
      'transfer_coding_refused',
      501,
    ],
    ['identity', 'POST / HTTP/1.1', ['Transfer-Encoding: identity'], 'transfer_coding_refused', 501],
    ['chunked on HTTP/1.0', 'POST / HTTP/1.0', ['Transfer-Encoding: chunked'], 'malformed_request', 400],
    ['Connection that names Host', 'GET / HTTP/1.1', ['Connection: host'], 'malformed_request', 400],
    [
      'Connection that names Content-Length',
      'POST / HTTP/1.1',
      ['Content-Length: 1', 'Connection: content-length'],
      'malformed_request',
      400,
    ],
    [
      'another expectation',
      'POST / HTTP/1.1',
      ['Content-Length: 5', 'Expect: 200-ok'],
      'expectation_failed',
      417,
    ],
    [
      'an expectation twice',
      'POST / HTTP/1.1',
      ['Content-Length: 5', 'Expect: 100-continue', 'Expect: 100-continue'],
      'expectation_failed',
      417,
    ],
    [
      'an upgrade with a body',
      'GET / HTTP/1.1',
      ['Connection: upgrade', 'Upgrade: websocket', 'Content-Length: 5'],
      'malformed_request',
      400,
    ],
  ];
  it.each(rows)('%s', (_, line, fields, code, status) => {
    expect(plan(line, ...fields)).toMatchObject({ refused: code, status });
  });

  it('names the error of the parser in the cause, for the record', () => {
    expect(plan('POST / HTTP/1.1', 'Content-Length: 5', 'Transfer-Encoding: chunked')).toMatchObject({
      cause: 'length_and_encoding',
      hint: 'the message has both Content-Length and Transfer-Encoding',
    });
  });
});

describe('a head that passes', () => {
  it.each([
    ['GET', true],
    ['HEAD', true],
    ['OPTIONS', true],
    ['PUT', true],
    ['DELETE', true],
    ['POST', false],
    ['PATCH', false],
    ['get', false],
    ['PROPFIND', false],
    ['X-OWN', false],
  ])('%s may be repeated: %s', (method, isIdempotent) => {
    expect(planned(`${method} / HTTP/1.1`).isIdempotent).toBe(isIdempotent);
  });

  it.each([
    ['nothing', 'GET / HTTP/1.1', [], false],
    ['Connection: close', 'GET / HTTP/1.1', ['Connection: close'], true],
    ['close among others, in any case', 'GET / HTTP/1.1', ['Connection: te, Close'], true],
    ['HTTP/1.0', 'GET / HTTP/1.0', [], true],
    ['HTTP/1.0 with keep-alive', 'GET / HTTP/1.0', ['Connection: keep-alive'], true],
    ['Proxy-Connection: close, which means nothing', 'GET / HTTP/1.1', ['Proxy-Connection: close'], false],
  ] as const)('with %s ends the connection: %s', (_, line, fields, ends) => {
    expect(planned(line, ...fields).endsConnection).toBe(ends);
  });

  it.each([
    ['a body', 'POST / HTTP/1.1', ['Content-Length: 5', 'Expect: 100-continue'], true],
    ['a chunked body', 'POST / HTTP/1.1', ['Transfer-Encoding: chunked', 'Expect: 100-Continue'], true],
    ['no body', 'POST / HTTP/1.1', ['Expect: 100-continue'], false],
    ['an empty body', 'POST / HTTP/1.1', ['Content-Length: 0', 'Expect: 100-continue'], false],
    ['HTTP/1.0', 'POST / HTTP/1.0', ['Content-Length: 5', 'Expect: 100-continue'], false],
  ] as const)('with an expectation and %s waits for 100: %s', (_, line, fields, waits) => {
    expect(planned(line, ...fields).expectsContinue).toBe(waits);
  });

  it.each([
    ['websocket', 'GET / HTTP/1.1', ['Connection: Upgrade', 'Upgrade: websocket'], true],
    [
      'websocket in another case beside keep-alive',
      'GET / HTTP/1.1',
      ['Connection: keep-alive, upgrade', 'Upgrade: WebSocket'],
      true,
    ],
    ['an Upgrade that Connection does not list', 'GET / HTTP/1.1', ['Upgrade: websocket'], false],
    ['a Connection without Upgrade', 'GET / HTTP/1.1', ['Connection: upgrade'], false],
    [
      'h2c',
      'GET / HTTP/1.1',
      ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AA'],
      false,
    ],
    ['a list of protocols', 'GET / HTTP/1.1', ['Connection: Upgrade', 'Upgrade: websocket, h2c'], false],
    [
      'two Upgrades',
      'GET / HTTP/1.1',
      ['Connection: Upgrade', 'Upgrade: websocket', 'Upgrade: websocket'],
      false,
    ],
    ['another protocol', 'GET / HTTP/1.1', ['Connection: Upgrade', 'Upgrade: TLS/1.0'], false],
    ['POST', 'POST / HTTP/1.1', ['Connection: Upgrade', 'Upgrade: websocket'], false],
    ['HTTP/1.0', 'GET / HTTP/1.0', ['Connection: Upgrade', 'Upgrade: websocket'], false],
  ] as const)('with %s is an upgrade: %s', (_, line, fields, isUpgrade) => {
    const { head, drop, isUpgrade: found } = planned(line, ...fields);
    expect(found).toBe(isUpgrade);
    // These are dropped in any case; an upgrade is written again.
    for (let i = 0; i < head.fields.count; i += 1) {
      const name = head.bytes.toString('latin1', head.fields.nameStart(i), head.fields.nameEnd(i));
      if (/^(connection|upgrade|http2-settings)$/i.test(name)) expect([name, drop[i]]).toEqual([name, 1]);
    }
  });

  it('drops what belongs to this hop, what Connection names, and nothing else', () => {
    const { head, drop } = planned(
      'GET / HTTP/1.1',
      'Connection: keep-alive, X-Mine',
      'Keep-Alive: timeout=5',
      'Proxy-Connection: keep-alive',
      'Proxy-Authorization: Basic eDp5',
      'Proxy-Foo: 1',
      'TE: trailers',
      'Trailer: X-T',
      'x-mine: 1',
      'X-Mine: 2',
      'X-Mine-Not: 3',
      'Authorization: Bearer agent',
      'X-Forwarded-For: 1.2.3.4',
    );
    const kept: string[] = [];
    for (let i = 0; i < head.fields.count; i += 1) {
      if (drop[i] === 0)
        kept.push(head.bytes.toString('latin1', head.fields.nameStart(i), head.fields.nameEnd(i)));
    }
    expect(kept).toEqual(['Host', 'X-Mine-Not', 'Authorization', 'X-Forwarded-For']);
  });
});
