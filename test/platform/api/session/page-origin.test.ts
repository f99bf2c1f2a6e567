import { describe, expect, it } from 'vitest';
import { readRequestHead } from '../../../../src/base/http/request-head.ts';
import { parseTrustedProxies } from '../../../../src/platform/api/client-address.ts';
import { pageOrigin } from '../../../../src/platform/api/session/page-origin.ts';

const trustedProxies = parseTrustedProxies(['10.0.0.0/8']);

function originOf(
  remoteAddress: string,
  host: string,
  proto?: string,
  publicUrl?: string,
): string | undefined {
  const fields = proto === undefined ? [] : ['X-Forwarded-Proto', proto];
  const head = readRequestHead({ url: '/', rawHeaders: ['Host', host, ...fields] });
  if (trustedProxies === undefined) throw new Error('no proxies');
  return pageOrigin({ remoteAddress }, head, { trustedProxies, publicUrl });
}

describe('the origin of a page', () => {
  it.each([
    ['on loopback', '127.0.0.1', '127.0.0.1:8080', undefined, 'http://127.0.0.1:8080'],
    ['on loopback by IPv6', '::1', '[::1]:8080', undefined, 'http://[::1]:8080'],
    ['on loopback by name', '::ffff:127.0.0.1', 'localhost:8080', undefined, 'http://localhost:8080'],
    ['over TLS by a trusted proxy', '10.1.2.3', 'a.example', 'https', 'https://a.example'],
    ['over TLS by two', '10.1.2.3', 'a.example:443', 'https, https', 'https://a.example'],
    ['over TLS by another sender', '192.0.2.7', 'a.example', 'https', undefined],
    ['partly over TLS', '10.1.2.3', 'a.example', 'https, http', undefined],
    ['over the network in plain', '192.0.2.7', 'a.example', undefined, undefined],
    ['of another name on loopback', '127.0.0.1', 'a.example', undefined, undefined],
    ['of a loopback name from another machine', '192.0.2.7', 'localhost:8080', undefined, undefined],
  ])('%s', (_, address, host, proto, expected) => {
    expect(originOf(address, host, proto)).toBe(expected);
  });

  it('is the public URL where there is one', () => {
    expect(originOf('192.0.2.7', 'inner', undefined, 'https://a.example/')).toBe('https://a.example');
  });
});
