import { expect, it } from 'vitest';
import { readRequestHead } from '../../../../src/base/http/request-head.ts';
import { requestFields, responseFields } from '../../../../src/platform/agent-server/app/relayed-fields.ts';

it('fields of the connection are not relayed, nor those that it names', () => {
  const rawHeaders = [
    'Host',
    'a.test',
    'Connection',
    'close, X-Own',
    'X-Own',
    '1',
    'Transfer-Encoding',
    'chunked',
  ];
  const head = readRequestHead({
    rawHeaders: [...rawHeaders, 'Te', 'x', 'Upgrade', 'y', 'X-A', '1', 'x-a', '2'],
  });
  expect(requestFields(head)).toEqual([
    ['host', 'a.test'],
    ['x-a', '1'],
    ['x-a', '2'],
  ]);
});

it('fields of a response are joined, but cookies, and its length is not that of the stream', () => {
  const headers = [
    ['content-type', 'text/plain'],
    ['content-length', '3'],
    ['connection', 'x-b'],
    ['x-b', '1'],
    ['x-a', '1'],
    ['X-A', '2'],
    ['set-cookie', 'a=1'],
    ['Set-Cookie', 'b=2'],
  ] as const;
  expect(responseFields(headers)).toEqual({
    fields: { 'Content-Type': 'text/plain', 'X-A': '1, 2' },
    cookies: ['a=1', 'b=2'],
  });
});
