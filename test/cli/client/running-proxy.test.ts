import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { fetchCertificate, parseProxyUrl } from '../../../src/cli/client/running-proxy.ts';
import { createTestSidecar } from '../../support/test-sidecar.ts';

describe('--proxy', () => {
  it.each([
    ['http://127.0.0.1:3128', { host: '127.0.0.1', port: 3128 }],
    ['http://127.0.0.1:3128/', { host: '127.0.0.1', port: 3128 }],
    ['http://sallyport:80', { host: 'sallyport', port: 80 }],
    ['http://[::1]:3128', { host: '::1', port: 3128 }],
    ['http://proxy.test', { host: 'proxy.test', port: 80 }],
  ])('%s is an address', (url, address) => expect(parseProxyUrl(url)).toEqual(address));

  it.each([
    ['127.0.0.1:3128', /--proxy must be a URL/],
    ['https://proxy.test', /--proxy must begin with http:/],
    ['http://x:token@proxy.test', /--token-file/],
    ['http://proxy.test/path', /without a path/],
  ])('%s is refused', (url, says) => expect(() => parseProxyUrl(url)).toThrow(says));
});

describe('the CA certificate', () => {
  it('comes from the proxy port', async () => {
    await using proxy = await createTestSidecar();
    expect(await fetchCertificate({ host: '127.0.0.1', port: proxy.port })).toBe(proxy.caPem);
  });

  const replies: readonly (readonly [string, string, RegExp])[] = [
    [
      'not found',
      'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n',
      /status 404: is this the port of a Sallyport proxy\?/,
    ],
    ['not a certificate', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', /no CA certificate/],
    ['too long', `HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n${'x'.repeat(99_999)}`, /too long/],
  ];
  it.each(replies)('is not taken if it is %s', async (_, reply, says) => {
    const server = createServer((socket) => socket.on('error', () => {}).end(reply));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await expect(fetchCertificate({ host: '127.0.0.1', port })).rejects.toThrow(says);
    server.close();
  });

  it('of a proxy that does not run is an error that says so', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    await expect(fetchCertificate({ host: '127.0.0.1', port })).rejects.toThrow(
      /cannot be reached \(ECONNREFUSED\)/,
    );
  });
});
