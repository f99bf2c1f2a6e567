// The heads that are sent, byte for byte, without a connection.
import { describe, expect, it } from 'vitest';
import { type ConnectionFields, readConnectionFields } from '../../../src/http1/connection-fields.ts';
import { isHeadError } from '../../../src/http1/head-error.ts';
import { compileNames } from '../../../src/http1/field-name.ts';
import type { ResponseHead } from '../../../src/http1/head-parser.ts';
import type { Injection } from '../../../src/proxy/gate/inject.ts';
import { outgoingRequestHead, outgoingResponseHead } from '../../../src/proxy/h1/outgoing-head.ts';
import { isRefusal } from '../../../src/proxy/refusal.ts';
import { planRequest } from '../../../src/proxy/gate/request-plan.ts';
import { responseOf } from '../../http1/parsed-head.ts';
import { authorityOf, requestHead } from '../request-head.ts';

const injection: Injection = {
  names: ['X-Key'],
  isReplaced: compileNames(['x-key']),
  lines: Buffer.from('X-Key: ours\r\n'),
  list: ['x-key', 'ours'],
  listed: ['x-key'],
  isBinding: false,
};

function sent(
  lines: readonly string[],
  more: { isInjected?: boolean; isOnProxyPort?: boolean } = {},
): string {
  const tunnel = more.isOnProxyPort === true ? undefined : authorityOf('a.test:443');
  const plan = planRequest(requestHead(...lines), tunnel, tunnel ? 'https' : 'http');
  if (isRefusal(plan)) throw new Error(plan.refused);
  return outgoingRequestHead(plan, more.isInjected === true ? injection : undefined).toString('latin1');
}

describe('a request', () => {
  const rows: readonly (readonly [string, readonly string[], object, readonly string[]])[] = [
    [
      'leaves as it came',
      ['GET / HTTP/1.1', 'Host: a.test', 'B:  c '],
      {},
      ['GET / HTTP/1.1', 'Host: a.test', 'B:  c '],
    ],
    [
      'gets the injected lines last, in place of its own',
      ['GET / HTTP/1.1', 'Host: a.test', 'x_key: mine', 'B: c'],
      { isInjected: true },
      ['GET / HTTP/1.1', 'Host: a.test', 'B: c', 'X-Key: ours'],
    ],
    [
      'keeps what would be replaced where nothing is injected',
      ['GET / HTTP/1.1', 'Host: a.test', 'X-Key: mine', 'X-Original-URL: /'],
      {},
      ['GET / HTTP/1.1', 'Host: a.test', 'X-Key: mine', 'X-Original-URL: /'],
    ],
    [
      'to upgrade says so anew',
      ['GET / HTTP/1.1', 'Host: a.test', 'Connection: keep-alive, Upgrade', 'Upgrade: WebSocket'],
      {},
      ['GET / HTTP/1.1', 'Host: a.test', 'Connection: Upgrade', 'Upgrade: websocket'],
    ],
    [
      'of HTTP/1.0 asks for the end of its connection',
      ['GET / HTTP/1.0', 'Host: a.test', 'Connection: keep-alive'],
      {},
      ['GET / HTTP/1.1', 'Host: a.test', 'Connection: close'],
    ],
    [
      'of HTTP/1.0 without a host gets one, and the injected lines behind all',
      ['GET http://a.test/x HTTP/1.0'],
      { isOnProxyPort: true, isInjected: true },
      ['GET /x HTTP/1.1', 'Host: a.test', 'Connection: close', 'X-Key: ours'],
    ],
    [
      'in absolute form leaves in origin form',
      ['GET http://a.test/x?y HTTP/1.1', 'Host: a.test'],
      { isOnProxyPort: true },
      ['GET /x?y HTTP/1.1', 'Host: a.test'],
    ],
  ];
  it.each(rows)('%s', (_, lines, more, expected) => {
    expect(sent(lines, more)).toBe([...expected, '', ''].join('\r\n'));
  });
});

describe('a response', () => {
  const read = (...lines: string[]): { head: ResponseHead; connection: ConnectionFields } => {
    const head = responseOf([...lines, '', ''].join('\r\n'));
    const connection = readConnectionFields(head);
    if (isHeadError(connection)) throw new Error(connection.code);
    return { head, connection };
  };

  it('loses Alt-Svc where it says nothing of its connection, and the next one with as many fields loses nothing', () => {
    const first = read('HTTP/1.1 200 OK', 'Alt-Svc: clear', 'A: b');
    const second = read('HTTP/1.1 200 OK', 'A: b', 'B: c');
    expect(first.connection).toBe(second.connection);
    const sent = [first, second, first].map(({ head, connection }) =>
      outgoingResponseHead(head, connection, 'keep').toString('latin1'),
    );
    expect(sent).toEqual([
      'HTTP/1.1 200 OK\r\nA: b\r\n\r\n',
      'HTTP/1.1 200 OK\r\nA: b\r\nB: c\r\n\r\n',
      'HTTP/1.1 200 OK\r\nA: b\r\n\r\n',
    ]);
    expect(first.connection.drop).toHaveLength(0);
  });

  it('does not change what it was made from', () => {
    const { head, connection } = read('HTTP/1.1 200 OK', 'Connection: X', 'Alt-Svc: clear', 'X: 1');
    outgoingResponseHead(head, connection, 'close');
    expect(Array.from(connection.drop)).toEqual([1, 0, 1]);
  });

  it('of which nothing changes is not copied', () => {
    const { head, connection } = read('HTTP/1.1 200 OK', 'A: b', 'Content-Length: 0');
    const out = outgoingResponseHead(head, connection, 'keep');
    expect([out.buffer === head.bytes.buffer, out.byteOffset]).toEqual([true, head.bytes.byteOffset]);
    expect(out.length).toBe(head.end);
  });

  const rows: readonly (readonly ['keep' | 'close' | 'upgrade', readonly string[], readonly string[]])[] = [
    [
      'keep',
      ['HTTP/1.1 200 OK', 'A: b', 'Content-Length: 0'],
      ['HTTP/1.1 200 OK', 'A: b', 'Content-Length: 0'],
    ],
    ['keep', ['HTTP/1.0 200 OK', 'Content-Length: 0'], ['HTTP/1.1 200 OK', 'Content-Length: 0']],
    ['keep', ['HTTP/1.1 200 OK', 'Alt-Svc: clear', 'A: b'], ['HTTP/1.1 200 OK', 'A: b']],
    ['keep', ['HTTP/1.1 200 OK', 'A: b', 'Keep-Alive: timeout=5'], ['HTTP/1.1 200 OK', 'A: b']],
    ['close', ['HTTP/1.1 200 OK', 'A: b'], ['HTTP/1.1 200 OK', 'A: b', 'Connection: close']],
    [
      'close',
      ['HTTP/1.1 200 OK', 'Content-Length: 5'],
      ['HTTP/1.1 200 OK', 'Content-Length: 5', 'Connection: close'],
    ],
    [
      'upgrade',
      ['HTTP/1.1 101 Switching', 'Upgrade: WebSocket', 'Connection: upgrade', 'Content-Length: 0', 'A: b'],
      ['HTTP/1.1 101 Switching', 'A: b', 'Connection: Upgrade', 'Upgrade: websocket'],
    ],
  ];
  it.each(rows)('to %s: %j', (ending, lines, expected) => {
    const { head, connection } = read(...lines);
    const out = outgoingResponseHead(head, connection, ending).toString('latin1');
    expect(out).toBe([...expected, '', ''].join('\r\n'));
  });
});
