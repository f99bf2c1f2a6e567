// The listen addresses that operators can configure, and which of them are reachable only from this machine.
import { describe, expect, it } from 'vitest';
import { exposureIssues, isLoopbackListen, parseAdminListen } from '../../src/sidecar/listen-address.ts';

describe('the listen address of the admin API', () => {
  it.each([
    ['host and port', '[::1]:3129', { host: '::1', port: 3129 }],
    ['a Unix socket', 'unix:/run/sallyport/admin.sock', { path: '/run/sallyport/admin.sock' }],
    ['off', 'off', 'off'],
    ['a socket path of 107 bytes', `unix:/${'x'.repeat(106)}`, { path: `/${'x'.repeat(106)}` }],
  ])('can be %s', (_, text, expected) => {
    expect(parseAdminListen(text)).toEqual(expected);
  });

  const path = 'must be unix: and an absolute path of at most 107 bytes';
  const address = 'must be host:port, unix:/path or off, for example 127.0.0.1:3129';
  it.each([
    ['a relative socket path', 'unix:run/s', path],
    ['an empty socket path', 'unix:', path],
    ['a socket path of 108 bytes', `unix:/${'x'.repeat(107)}`, path],
    ['a socket path of 108 bytes in fewer characters', `unix:/${'é'.repeat(53)}x`, path],
    ['a socket path with NUL', 'unix:/a\0b', path],
    ['off in capitals', 'OFF', address],
    ['empty', '', address],
    ['a word', 'on', address],
  ])('cannot be %s', (_, text, error) => {
    expect(parseAdminListen(text)).toEqual({ error });
  });
});

describe('isLoopbackListen()', () => {
  it.each(['127.0.0.1', '127.255.0.9', '::1', 'localhost'])('is true for %s', (host) => {
    expect(isLoopbackListen({ host })).toBe(true);
  });

  it.each(['0.0.0.0', '::', '10.0.0.1', '::ffff:10.0.0.1', '128.0.0.1', 'fe80::1', 'box.internal', ''])(
    'is false for %j',
    (host) => {
      expect(isLoopbackListen({ host })).toBe(false);
    },
  );
});

describe('the listener of the metrics where other machines reach it', () => {
  const issuesOf = (host: string, isExposed: boolean): readonly string[] =>
    exposureIssues({
      ...{ auth: undefined, allowClients: undefined, listen: { host: '127.0.0.1', port: 3128 } },
      admin: { listen: 'off', isExposed: false },
      metrics: { listen: { host, port: 9464 }, isExposed },
    }).map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);

  it('must be a decision of the operator', () => {
    expect(issuesOf('0.0.0.0', false)).toEqual([
      'metrics.listen: 0.0.0.0:9464 is reachable from other machines, and names of rules would be sent in plaintext: use loopback or unix:/path, or set metrics.exposed (SALLYPORT_METRICS_EXPOSED=true), with metrics.token_file for readers that have a token',
    ]);
    expect([...issuesOf('0.0.0.0', true), ...issuesOf('127.0.0.1', false)]).toEqual([]);
  });
});
