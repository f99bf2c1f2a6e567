// Where listeners may stand, in every spelling that operators write, and which of them only this machine reaches.
import { describe, expect, it } from 'vitest';
import { isLoopbackListen, parseAdminListen } from '../../src/sidecar/listen-address.ts';

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
