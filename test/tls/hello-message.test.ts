import { describe, expect, it } from 'vitest';
import { parseHelloMessage } from '../../src/tls/hello-message.ts';
import { alpn, extension, helloBody, type HelloParts, padding, serverName, vector } from './hello-bytes.ts';

const label63 = 'l'.repeat(63);
const longest = `${'a'.repeat(61)}.${label63}.${label63}.${label63}`;

function parseExtensions(...extensions: readonly Buffer[]): unknown {
  return parseHelloMessage(helloBody({ extensions: Buffer.concat(extensions) }));
}

describe('a server name', () => {
  it.each([
    { sent: 'good.test', read: 'good.test' },
    { sent: 'GOOD.Test', read: 'good.test' },
    { sent: 'GOOD.Test.', read: 'good.test' },
    { sent: 'localhost', read: 'localhost' },
    { sent: 'my_bucket.good.test', read: 'my_bucket.good.test' },
    { sent: 'xn--bcher-kva.test', read: 'xn--bcher-kva.test' },
    { sent: '1.2.3.4.in-addr.arpa', read: '1.2.3.4.in-addr.arpa' },
    { sent: '0x7f.1a', read: '0x7f.1a' },
    { sent: `${label63}.test`, read: `${label63}.test` },
    { sent: longest, read: longest },
    { sent: `${longest}.`, read: longest },
  ])('$sent is read as $read', ({ sent, read }) => {
    expect(parseExtensions(serverName(sent))).toEqual({ serverName: read, alpn: undefined });
  });

  it.each([
    ['empty', ''],
    ['a dot', '.'],
    ['with two dots at the end', 'good.test..'],
    ['with an empty label', 'good..test'],
    ['with a leading dot', '.good.test'],
    ['a wildcard', '*.good.test'],
    ['with a NUL byte', 'good.test\0.evil.test'],
    ['with a space', 'good test'],
    ['with a line end', 'good.test\n'],
    ['with a port', 'good.test:443'],
    ['with a percent sign', 'good%2etest'],
    ['with a slash', 'good.test/evil'],
    ['in UTF-8', 'bücher.test'],
    ['with a letter that lower case makes ASCII', '\u212aelvin.test'],
    ['an IPv4 address', '192.0.2.1'],
    ['an IPv4 address with a dot at the end', '192.0.2.1.'],
    ['a short IPv4 address', '127.1'],
    ['a number', '2130706433'],
    ['an IPv6 address', '2001:db8::1'],
    ['an IPv6 address in brackets', '[2001:db8::1]'],
    ['with a label of 64 bytes', `${label63}l.test`],
    ['of 254 bytes', `a${longest}`],
    ['of 300 bytes', `${'a.'.repeat(148)}test`],
    ['of 65,000 bytes', 'a'.repeat(65_000)],
  ])('%s is an error', (_, sent) => {
    expect(parseExtensions(serverName(sent))).toBe('server_name_invalid');
  });

  const name = Buffer.from('good.test');
  it.each([
    ['an empty extension', extension(0, Buffer.alloc(0))],
    ['an empty list', extension(0, vector(2, Buffer.alloc(0)))],
    ['two names in the list', serverName('good.test', 'evil.test')],
    ['the same name twice', serverName('good.test', 'good.test')],
    ['a name of another type', extension(0, vector(2, Buffer.concat([Buffer.from([1]), vector(2, name)])))],
    [
      'a name of another type after a host name',
      extension(
        0,
        vector(2, Buffer.concat([Buffer.from([0]), vector(2, name), Buffer.from([1]), vector(2, name)])),
      ),
    ],
    [
      'a byte after the list',
      extension(
        0,
        Buffer.concat([vector(2, Buffer.concat([Buffer.from([0]), vector(2, name)])), Buffer.alloc(1)]),
      ),
    ],
    [
      'a byte after the name',
      extension(0, vector(2, Buffer.concat([Buffer.from([0]), vector(2, name), Buffer.alloc(1)]))),
    ],
    [
      'a name that is longer than its list',
      extension(0, vector(2, Buffer.concat([Buffer.from([0, 0, 99]), name]))),
    ],
  ])('in %s is an error', (_, sent) => {
    expect(parseExtensions(sent)).toBe('server_name_invalid');
  });
});

describe('an ALPN list', () => {
  it.each([
    ['one protocol', ['http/1.1']],
    ['two, in their order', ['http/1.1', 'h2']],
    ['GREASE and a protocol of 255 bytes', ['\x8a\x8a', 'x'.repeat(255), 'h2']],
  ])('of %s is read', (_, protocols) => {
    expect(parseExtensions(alpn(...protocols))).toEqual({ serverName: undefined, alpn: protocols });
  });

  it.each([
    ['in an empty extension', extension(16, Buffer.alloc(0))],
    ['without an entry', alpn()],
    ['with an empty entry', alpn('h2', '')],
    ['that ends in the middle of an entry', extension(16, vector(2, Buffer.from([3, 104, 50])))],
    [
      'with a byte after it',
      extension(16, Buffer.concat([vector(2, Buffer.from([2, 104, 50])), Buffer.alloc(1)])),
    ],
  ])('%s is an error', (_, sent) => {
    expect(parseExtensions(sent)).toBe('alpn_invalid');
  });
});

describe('a message', () => {
  it.each<[string, HelloParts]>([
    ['without extensions, as TLS 1.2 allows', { extensions: undefined }],
    ['with an empty list of extensions', { extensions: Buffer.alloc(0) }],
    [
      'with unknown extensions',
      { extensions: Buffer.concat([extension(0x0a0a, Buffer.alloc(0)), padding(999)]) },
    ],
    ['without a session id', { sessionId: Buffer.alloc(0) }],
    ['of the version of TLS 1.0', { version: Buffer.from([3, 1]) }],
  ])('%s is read', (_, parts) => {
    expect(parseHelloMessage(helloBody(parts))).toEqual({ serverName: undefined, alpn: undefined });
  });

  it.each<[string, HelloParts]>([
    ['of the version of SSL 2', { version: Buffer.from([2, 0]) }],
    ['with a session id of 33 bytes', { sessionId: Buffer.alloc(33) }],
    ['without cipher suites', { cipherSuites: Buffer.alloc(0) }],
    ['with half a cipher suite', { cipherSuites: Buffer.alloc(3) }],
    ['without compression methods', { compressions: Buffer.alloc(0) }],
    ['with half an extension', { extensions: padding(9).subarray(0, -1) }],
    ['with an extension type alone', { extensions: Buffer.from([0, 0]) }],
  ])('%s is an error', (_, parts) => {
    expect(parseHelloMessage(helloBody(parts))).toBe('hello_malformed');
  });

  it('that is cut off anywhere, or goes on after its extensions, is an error', () => {
    const body = helloBody({ extensions: Buffer.concat([serverName('good.test'), alpn('h2')]) });
    const bare = helloBody({ extensions: undefined }).length; // a cut here leaves a hello without extensions
    for (let end = 0; end < body.length; end += 1) {
      if (end !== bare) expect(parseHelloMessage(body.subarray(0, end))).toBe('hello_malformed');
    }
    expect(parseHelloMessage(Buffer.concat([body, Buffer.alloc(1)]))).toBe('hello_malformed');
  });

  it.each([
    ['server names', [serverName('good.test'), serverName('evil.test')]],
    ['equal server names', [serverName('good.test'), serverName('good.test')]],
    ['ALPN lists', [alpn('h2'), alpn('http/1.1')]],
    ['unknown extensions of one type', [padding(1), serverName('good.test'), padding(2)]],
  ])('with two %s is an error', (_, extensions) => {
    expect(parseExtensions(...extensions)).toBe('extension_repeated');
  });
});
