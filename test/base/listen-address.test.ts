// The addresses of listeners in every spelling that operators write.
import { describe, expect, it } from 'vitest';
import { listenerUrl, parseListenAddress, toReachable } from '../../src/base/listen-address.ts';

describe('an address', () => {
  it.each([
    ['3128', '127.0.0.1', 3128],
    [':3128', '0.0.0.0', 3128],
    ['0', '127.0.0.1', 0],
    ['127.0.0.1:65535', '127.0.0.1', 65_535],
    ['[::1]:0', '::1', 0],
    ['[::]:1', '::', 1],
    ['box.internal:1', 'box.internal', 1],
  ])('%s is %s and %i', (text, host, port) => {
    expect(parseListenAddress(text)).toEqual({ host, port });
  });

  it.each([
    '',
    ':',
    'host',
    '127.0.0.1:',
    '127.0.0.1:65536',
    '127.0.0.1:123456',
    '127.0.0.1:-1',
    '127.0.0.1:1e3',
    '127.0.0.1:1 ',
    ' 127.0.0.1:1',
    '127.0.0.1:1\n',
    '::1:80',
    '[]:80',
    '[::1]',
    '[::1]80',
    'http://127.0.0.1:80',
    'unix:/run/s',
    'off',
  ])('%j is rejected, and the message shows the form', (text) => {
    expect(parseListenAddress(text)).toBe('must be host:port, for example 127.0.0.1:3128 or [::1]:3128');
  });
});

it.each([
  [undefined, ''],
  [{ address: '127.0.0.1', port: 3128 }, 'http://127.0.0.1:3128'],
  [{ address: '::1', port: 3128 }, 'http://[::1]:3128'],
])('the URL of a listener at %j is %j', (listener, url) => {
  expect(listenerUrl(listener)).toBe(url);
});

it.each([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
  ['10.1.2.3', '10.1.2.3'],
])('a listener on %s is reached at %s', (host, reached) => {
  expect(toReachable({ host, port: 1 })).toEqual({ host: reached, port: 1 });
});
