// Where listeners may stand, in every spelling that operators write, and which of them only this machine reaches.
import { describe, expect, it } from 'vitest';
import { listenerUrl, parseListenAddress } from '../../src/base/listen-address.ts';
import { isLoopbackListen, parseAdminListen } from '../../src/sidecar/listen-address.ts';

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
  ])('%j is none, and the answer says how one is written', (text) => {
    expect(parseListenAddress(text)).toBe('must be host:port, for example 127.0.0.1:3128 or [::1]:3128');
  });
});

describe('the admin API may stand', () => {
  it.each([
    ['on a port', '[::1]:3129', { host: '::1', port: 3129 }],
    ['on a socket', 'unix:/run/sallyport/admin.sock', { path: '/run/sallyport/admin.sock' }],
    ['nowhere', 'off', 'off'],
    ['on a socket of 107 bytes', `unix:/${'x'.repeat(106)}`, { path: `/${'x'.repeat(106)}` }],
  ])('%s', (_, text, expected) => {
    expect(parseAdminListen(text)).toEqual(expected);
  });

  const path = 'must be unix: and an absolute path of at most 107 bytes';
  const address = 'must be host:port, unix:/path or off, for example 127.0.0.1:3129';
  it.each([
    ['a relative path', 'unix:run/s', path],
    ['no path', 'unix:', path],
    ['108 bytes', `unix:/${'x'.repeat(107)}`, path],
    ['108 bytes in fewer letters', `unix:/${'é'.repeat(53)}x`, path],
    ['a NUL', 'unix:/a\0b', path],
    ['OFF', 'OFF', address],
    ['nothing', '', address],
    ['a word', 'on', address],
  ])('not on %s', (_, text, error) => {
    expect(parseAdminListen(text)).toEqual({ error });
  });
});

describe('only this machine reaches', () => {
  it.each(['127.0.0.1', '127.255.0.9', '::1', 'localhost'])('%s', (host) => {
    expect(isLoopbackListen({ host })).toBe(true);
  });

  it.each(['0.0.0.0', '::', '10.0.0.1', '::ffff:10.0.0.1', '128.0.0.1', 'fe80::1', 'box.internal', ''])(
    'not %j alone',
    (host) => {
      expect(isLoopbackListen({ host })).toBe(false);
    },
  );
});

it.each([
  [undefined, ''],
  [{ address: '127.0.0.1', port: 3128 }, 'http://127.0.0.1:3128'],
  [{ address: '::1', port: 3128 }, 'http://[::1]:3128'],
])('the URL of a listener at %j is %j', (listener, url) => {
  expect(listenerUrl(listener)).toBe(url);
});
