// How a head frames its body: what is accepted, and as what. What is rejected is in the fixture rows.
import { describe, expect, it } from 'vitest';
import { requestFraming, responseFraming } from '../../src/http1/framing.ts';
import { requestOf, responseOf } from './parsed-head.ts';

const chunked = 'Transfer-Encoding: chunked\r\n';
const length = 'Content-Length: 3\r\n';

const requests: readonly [name: string, lines: string, framing: object][] = [
  ['no claim', '', { kind: 'none' }],
  ['a length', length, { kind: 'length', length: 3 }],
  ['the greatest length', 'Content-Length: 9007199254740991\r\n', { kind: 'length', length: 2 ** 53 - 1 }],
  ['a length of zero, which is no body', 'Content-Length: 0\r\n', { kind: 'none' }],
  ['chunked', chunked, { kind: 'chunked' }],
  ['chunked in another case', 'transfer-encoding:ChUnKeD\r\n', { kind: 'chunked' }],
];

const responses: readonly [name: string, status: number, method: string, lines: string, framing: object][] = [
  ['no claim', 200, 'GET', '', { kind: 'until_close' }],
  ['a length', 200, 'GET', length, { kind: 'length', length: 3 }],
  ['a length of zero, which is no body', 200, 'GET', 'Content-Length: 0\r\n', { kind: 'none' }],
  ['chunked', 500, 'POST', chunked, { kind: 'chunked' }],
  ['HEAD', 200, 'HEAD', length, { kind: 'none' }],
  ['HEAD and chunked', 200, 'HEAD', chunked, { kind: 'none' }],
  ['HEAD without a claim', 200, 'HEAD', '', { kind: 'none' }],
  ['an interim response', 103, 'GET', '', { kind: 'none' }],
  ['switching protocols', 101, 'GET', '', { kind: 'none' }],
  ['no content', 204, 'GET', '', { kind: 'none' }],
  ['not modified', 304, 'GET', length, { kind: 'none' }],
  ['not modified and chunked', 304, 'GET', chunked, { kind: 'none' }],
  ['205, which may not have content but is framed as any', 205, 'GET', length, { kind: 'length', length: 3 }],
  ['CONNECT', 200, 'CONNECT', length, { kind: 'none' }],
  ['CONNECT refused', 407, 'CONNECT', length, { kind: 'length', length: 3 }],
];

describe('the body of a request', () => {
  it.each(requests)('%s', (_name, lines, framing) => {
    expect(requestFraming(requestOf(`POST / HTTP/1.1\r\n${lines}\r\n`))).toEqual(framing);
  });
});

describe('the body of a response', () => {
  it.each(responses)('%s', (_name, status, method, lines, framing) => {
    expect(responseFraming(responseOf(`HTTP/1.1 ${status} X\r\n${lines}\r\n`), method)).toEqual(framing);
  });

  it('of HTTP/1.0 lasts until close', () => {
    expect(responseFraming(responseOf('HTTP/1.0 200 OK\r\n\r\n'), 'GET')).toEqual({ kind: 'until_close' });
  });
});
