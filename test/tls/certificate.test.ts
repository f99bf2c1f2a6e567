import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { LeafSubject } from '../../src/tls/certificate.ts';
import {
  type CertificateAuthority,
  createCertificateAuthority,
} from '../../src/tls/certificate-authority.ts';
import { createLeafCache } from '../../src/tls/leaf-cache.ts';
import { createScratch } from '../support/scratch.ts';
import { runProgram } from './external-program.ts';
import { listenTls } from './handshake.ts';

const longest = `${'a'.repeat(61)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(63)}`;
const subjects: readonly (LeafSubject & { readonly what: string })[] = [
  { what: 'a name', host: 'api.good.test', kind: 'name' },
  { what: 'a name with an underscore', host: 'my_bucket.good.test', kind: 'name' },
  { what: 'a single label', host: 'localhost', kind: 'name' },
  { what: 'an A-label', host: 'xn--bcher-kva.test', kind: 'name' },
  { what: 'a name of 64 characters', host: `${'n'.repeat(59)}.test`, kind: 'name' },
  { what: 'a name of 65 characters', host: `${'n'.repeat(60)}.test`, kind: 'name' },
  { what: 'a name of 253 characters', host: longest, kind: 'name' },
  { what: 'an IPv4 address', host: '127.0.0.1', kind: 'ipv4' },
  { what: 'an IPv6 address', host: '2001:db8::8:800:200c:417a', kind: 'ipv6' },
  { what: 'an IPv6 address that ends in zeros', host: '2001:db8::', kind: 'ipv6' },
  { what: 'the IPv6 loopback address', host: '::1', kind: 'ipv6' },
  { what: 'an IPv6 address with an IPv4 tail', host: '::ffff:192.0.2.1', kind: 'ipv6' },
  { what: 'an IPv6 address of eight groups', host: '1:2:3:4:5:6:7:8', kind: 'ipv6' },
];
const authorities = {
  'a P-256 CA': createCertificateAuthority(),
  'an RSA CA': createCertificateAuthority({ keyType: 'rsa' }),
};

describe.each(Object.entries(authorities))('leaves of %s', (_, ca) => {
  it.each(subjects)('for $what satisfy openssl verify -x509_strict', async ({ host, kind }) => {
    await using scratch = await createScratch();
    const caFile = await scratch.write('ca.pem', ca.certificatePem);
    const leafFile = await scratch.write('leaf.pem', ca.issueLeaf({ host, kind }, new Date()).chainPem);
    const asked = kind === 'name' ? '-verify_hostname' : '-verify_ip';
    const output = await runProgram('openssl', [
      ...['verify', '-x509_strict', '-check_ss_sig', '-purpose', 'sslserver', asked, host],
      ...['-no-CAstore', '-no-CApath', '-CAfile', caFile, leafFile],
    ]);
    expect(output).toBe(`${leafFile}: OK\n`);
  });

  it('are accepted by Python with strict flags in a real handshake', async () => {
    await using scratch = await createScratch();
    const cache = createLeafCache(ca);
    await using listeners = new AsyncDisposableStack();
    const targets: [port: number, name: string][] = [];
    for (const subject of subjects) {
      const listener = listeners.use(await listenTls(() => cache.contextFor(subject)));
      targets.push([listener.port, subject.host]);
    }
    const caFile = await scratch.write('ca.pem', ca.certificatePem);
    const output = await runProgram('python3', ['-c', pythonClient, caFile], {
      input: JSON.stringify(targets),
    });
    expect(output).toBe(subjects.map(({ host }) => `${host} ok\n`).join(''));
  });

  it('have the fields of a server certificate, and no more', async () => {
    const text = await textOf(ca, { host: 'api.good.test', kind: 'name' });
    expect(text).toContain('Version: 3 (0x2)');
    expect(text).toContain('Subject: CN=api.good.test\n');
    expect(extensionsIn(text)).toEqual([
      'Basic Constraints: critical CA:FALSE',
      'Key Usage: critical Digital Signature',
      'Extended Key Usage: TLS Web Server Authentication',
      expect.stringMatching(/^Subject Key Identifier: ([0-9A-F]{2}:){19}[0-9A-F]{2}$/),
      expect.stringMatching(/^Authority Key Identifier: ([0-9A-F]{2}:){19}[0-9A-F]{2}$/),
      'Subject Alternative Name: DNS:api.good.test',
    ]);
  });
});

const pythonClient = `
import json, socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations(sys.argv[1])
context.verify_flags = ssl.VERIFY_DEFAULT | ssl.VERIFY_X509_STRICT
for port, name in json.load(sys.stdin):
    with socket.create_connection(('127.0.0.1', port)) as raw, context.wrap_socket(raw, server_hostname=name) as tls:
        assert tls.recv(1) == b'.'
        print(name, 'ok')
`;
import { runs } from '../support/run-size.ts';

describe('a leaf', () => {
  const ca = authorities['a P-256 CA'];

  it('has an empty subject and a critical alternative name where the host is too long for a common name', async () => {
    const text = await textOf(ca, { host: longest, kind: 'name' });
    expect(text).toMatch(/Subject: *\n/);
    expect(extensionsIn(text)).toContain(`Subject Alternative Name: critical DNS:${longest}`);
  });

  it('names a host of exactly 64 characters in its subject', async () => {
    const host = `${'n'.repeat(59)}.test`;
    const text = await textOf(ca, { host, kind: 'name' });
    expect(text).toContain(`Subject: CN=${host}\n`);
    expect(extensionsIn(text)).toContain(`Subject Alternative Name: DNS:${host}`);
  });

  it('is signed by ECDSA without parameters under a P-256 CA, by RSA with NULL under an RSA one', async () => {
    const p256 = await structureOf(ca, new Date());
    expect(p256).toMatch(/:ecdsa-with-SHA256\n[^\n]+BIT STRING/);
    const rsa = await structureOf(authorities['an RSA CA'], new Date());
    expect(rsa).toMatch(/:sha256WithRSAEncryption\n[^\n]+NULL *\n[^\n]+BIT STRING/);
  });

  it.each([
    {
      start: '2049-12-28T00:00:00Z',
      notBefore: 'UTCTIME :491227230000Z',
      notAfter: 'UTCTIME :491230230000Z',
    },
    {
      start: '2049-12-30T12:34:56Z',
      notBefore: 'UTCTIME :491230113456Z',
      notAfter: 'GENERALIZEDTIME :20500102113456Z',
    },
    {
      start: '2050-01-01T01:00:00Z',
      notBefore: 'GENERALIZEDTIME :20500101000000Z',
      notAfter: 'GENERALIZEDTIME :20500104000000Z',
    },
  ])('made at $start writes its times as RFC 5280 wants them', async ({ start, notBefore, notAfter }) => {
    const then = new Date(start);
    const structure = await structureOf(
      createCertificateAuthority({ now: new Date(then.getTime() - 864e5) }),
      then,
    );
    const times = [...structure.matchAll(/(?:UTC|GENERALIZED)TIME +:\d+Z/g)].map(([text]) =>
      text.replace(/ +/, ' '),
    );
    expect(times).toEqual([notBefore, notAfter]);
  });

  it('has a serial that is positive, minimal and unlike any other: thousands of them, read by Node and by openssl', async () => {
    await using scratch = await createScratch();
    const count = runs(5_000);
    const leaves = Array.from({ length: count }, () => leafOf(ca, { host: 'api.good.test', kind: 'name' }));
    const serials = leaves.map(({ raw }) => serialBytes(raw));
    for (const serial of serials) {
      expect(serial.length).toBe(16);
      expect(serial.readInt8(0)).toBeGreaterThan(0);
    }
    expect(new Set(leaves.map(({ serialNumber }) => serialNumber)).size).toBe(count);
    expect(new Set(serials.map((serial) => serial[0])).size).toBeGreaterThan(100);

    const bundle = await scratch.write('leaves.pem', leaves.map(String).join(''));
    const output = await runProgram('openssl', ['storeutl', '-certs', '-text', '-noout', bundle]);
    expect(output).toContain(`Total found: ${count}`);
    const read = [...output.matchAll(/Serial Number:\n +([0-9a-f:]+)\n/g)].map(([, hex]) =>
      hex?.replaceAll(':', ''),
    );
    expect(read).toEqual(serials.map((serial) => serial.toString('hex')));
  });
});

function leafOf(ca: CertificateAuthority, subject: LeafSubject, now: Date = new Date()): X509Certificate {
  return new X509Certificate(ca.issueLeaf(subject, now).chainPem);
}

async function textOf(ca: CertificateAuthority, subject: LeafSubject): Promise<string> {
  return runProgram('openssl', ['x509', '-noout', '-text', '-nameopt', 'RFC2253'], {
    input: leafOf(ca, subject).toString(),
  });
}

async function structureOf(ca: CertificateAuthority, now: Date): Promise<string> {
  const leaf = leafOf(ca, { host: 'api.good.test', kind: 'name' }, now);
  return runProgram('openssl', ['asn1parse'], { input: leaf.toString() });
}

/** `X509v3 Name: [critical]` and the line below it, as one line each. */
function extensionsIn(text: string): string[] {
  return [...text.matchAll(/X509v3 (?!extensions)([^\n]+?) *\n +([^\n]+?) *\n/g)].map(
    ([, name, value]) => `${name} ${value}`,
  );
}

/** The INTEGER after the version, [0] { 2 }. */
function serialBytes(der: Buffer): Buffer {
  const version = Buffer.from('a003020102', 'hex');
  const at = der.indexOf(version) + version.length;
  expect(der[at]).toBe(2);
  return der.subarray(at + 2, at + 2 + (der[at + 1] ?? 0));
}
