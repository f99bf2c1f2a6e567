// What ends at this hop. Refusals of requests stand in the fixture rows.
import { describe, expect, it } from 'vitest';
import { type ConnectionFields, readConnectionFields } from '../../src/http1/connection-fields.ts';
import { isHeadError } from '../../src/http1/head-error.ts';
import type { RequestHead, ResponseHead } from '../../src/http1/head-parser.ts';
import { isPersistent } from './message-reading.ts';
import { requestOf, responseOf } from './parsed-head.ts';

function read(head: RequestHead | ResponseHead): ConnectionFields {
  const connection = readConnectionFields(head);
  if (isHeadError(connection)) throw new Error(connection.code);
  return connection;
}

function request(lines: string, version = '1.1'): RequestHead {
  return requestOf(`GET / HTTP/${version}\r\n${lines}\r\n\r\n`);
}

function response(lines: string): ResponseHead {
  return responseOf(`HTTP/1.1 200 OK\r\n${lines}\r\n\r\n`);
}

describe('the options of Connection', () => {
  it.each([
    ['close', 'Connection: close', { close: true, keepAlive: false, upgrade: false }],
    ['keep-alive in another case', 'Connection: Keep-Alive', { close: false, keepAlive: true }],
    ['a list with empty elements', 'Connection: , close ,\t,Upgrade,', { close: true, upgrade: true }],
    ['two fields', 'Connection: keep-alive\r\nConnection: close', { close: true, keepAlive: true }],
    ['an option that only begins like one', 'Connection: closed', { close: false }],
    ['none', 'Host: a', { close: false, keepAlive: false, upgrade: false, upgradeToken: undefined }],
  ])('%s', (_name, lines, options) => {
    expect(read(request(lines))).toMatchObject(options);
  });
});

describe('the protocol to upgrade to', () => {
  it.each([
    ['is lower-cased', 'Connection: Upgrade\r\nUpgrade: WebSocket', '1.1', 'websocket'],
    ['needs the option', 'Upgrade: websocket', '1.1', undefined],
    ['needs the field', 'Connection: upgrade', '1.1', undefined],
    ['is one token', 'Connection: upgrade\r\nUpgrade: h2c, websocket', '1.1', undefined],
    ['is one field', 'Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: websocket', '1.1', undefined],
    ['is not empty', 'Connection: upgrade\r\nUpgrade:', '1.1', undefined],
    ['is ignored on HTTP/1.0', 'Connection: upgrade\r\nUpgrade: websocket', '1.0', undefined],
  ])('%s', (_name, lines, version, upgradeToken) => {
    expect(read(request(lines, version)).upgradeToken).toBe(upgradeToken);
  });
});

describe('fields that end at this hop', () => {
  it.each([
    'Connection: x',
    'Keep-Alive: timeout=5',
    'Proxy-Connection: keep-alive',
    'Proxy-Authorization: Basic a',
    'Proxy-Authenticate: Basic',
    'Proxy-Whatever: a',
    'TE: trailers',
    'Trailer: X',
    'Upgrade: h2c',
  ])('%s', (line) => {
    expect(Array.from(read(request(`Host: a\r\n${line}`)).drop)).toEqual([0, 1]);
    expect(Array.from(read(response(`Server: a\r\n${line}`)).drop)).toEqual([0, 1]);
  });

  it.each([
    'Host: a',
    'Content-Length: 0',
    'Transfer-Encoding: chunked',
    'Expect: 100-continue',
    'X-Proxy-A: b',
  ])('but not %s', (line) => expect(Array.from(read(request(line)).drop)).toEqual([0]));

  it('all that Connection nominates, in any case and however often', () => {
    const lines = 'Connection: X-a, authorization\r\nx-A: 1\r\nX-B: 2\r\nAuthorization: 3\r\nX-A: 4';
    expect(Array.from(read(request(lines)).drop)).toEqual([1, 1, 0, 1, 1]);
  });

  it('nothing that Connection does not name in full', () => {
    expect(Array.from(read(request('Connection: X-A\r\nX-AB: 1\r\nX: 2\r\nX_A: 3')).drop)).toEqual([
      1, 0, 0, 0,
    ]);
  });

  it('no framing of a response, even if its origin nominates it', () => {
    const lines = 'Connection: Transfer-Encoding, a b, X-A\r\nTransfer-Encoding: chunked\r\nX-A: 1';
    expect(Array.from(read(response(lines)).drop)).toEqual([1, 0, 1]);
  });
});

describe('a response without such fields', () => {
  const lines = 'Server: a\r\nAlt-Svc: clear\r\nContent-Length: 0';
  const shared = read(response(lines));

  it('has nothing to drop, and says nothing of its connection', () => {
    expect(shared).toEqual({
      close: false,
      keepAlive: false,
      upgrade: false,
      upgradeToken: undefined,
      drop: [],
      keepAliveTimeoutSeconds: undefined,
    });
  });

  it('shares what it says with all others, and no write reaches that', () => {
    expect(read(response('X-Other: b'))).toBe(shared);
    expect(() => Object.assign(shared.drop, { 1: 1 })).toThrow(TypeError);
    expect(() => Object.assign(shared, { close: true })).toThrow(TypeError);
    expect(read(response(lines))).toMatchObject({ close: false, drop: [] });
  });

  it('does not share it with a request: more of its fields may be marked', () => {
    const [one, other] = [readConnectionFields(request(lines)), readConnectionFields(request(lines))];
    if (isHeadError(one) || isHeadError(other)) throw new Error('an error');
    one.drop[0] = 1;
    expect([[...one.drop], [...other.drop]]).toEqual([
      [1, 0, 0],
      [0, 0, 0],
    ]);
  });
});

describe('the timeout of Keep-Alive', () => {
  it.each([
    ['timeout=5', 5],
    ['max=100, TIMEOUT=15 ', 15],
    ['timeout=0', 0],
    ['timeout', undefined],
    ['timeout=', undefined],
    ['timeout=-1', undefined],
    ['timeout=9999999999', undefined],
    ['xtimeout=5', undefined],
    ['timeout=9', 9],
    ['timeout=999999999', 999_999_999],
    ['timeout=1a', undefined],
    ['timeout=1 2', undefined],
    ['timeout=7\r\nTE: trailers', 7],
  ])('%s', (value, seconds) => {
    expect(read(response(`Keep-Alive: ${value}`)).keepAliveTimeoutSeconds).toBe(seconds);
  });
});

describe('a request', () => {
  const options = (count: number): string =>
    `Connection: ${Array.from({ length: count }, (_, i) => `x${i}`).join(', ,')}`;
  it.each([
    ['may name 64 options', options(64), undefined],
    ['may not name one more', options(65), 'connection_too_long'],
    ['may not name what is no token', 'Connection: a b', 'connection_malformed'],
    ['may not nominate its framing', 'Connection: close, content-length', 'connection_strips_framing'],
    ['may not in a second field', 'Connection: close\r\nConnection: host', 'connection_strips_framing'],
  ])('%s', (_name, lines, error) => {
    const connection = readConnectionFields(request(lines));
    expect(isHeadError(connection) ? connection.code : undefined).toBe(error);
  });
});

describe('a connection outlives the message', () => {
  it.each([
    ['on HTTP/1.1', 'Host: a', '1.1', true],
    ['but not with close', 'Connection: close, keep-alive', '1.1', false],
    ['nor on HTTP/1.0', 'Host: a', '1.0', false],
    ['unless that says keep-alive', 'Connection: keep-alive', '1.0', true],
  ])('%s', (_name, lines, version, isExpected) => {
    const head = request(lines, version);
    expect(isPersistent(head, read(head))).toBe(isExpected);
  });
});
