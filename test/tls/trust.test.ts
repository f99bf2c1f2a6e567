import { createPrivateKey, X509Certificate } from 'node:crypto';
import { getCACertificates } from 'node:tls';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { signRoot } from '../../src/tls/certificate.ts';
import {
  type CertificateAuthority,
  createCertificateAuthority,
} from '../../src/tls/certificate-authority.ts';
import { createLeafCache } from '../../src/tls/leaf-cache.ts';
import { parseCertificates, toCertificatePem } from '../../src/tls/pem.ts';
import { createTrustSet, type TrustSet } from '../../src/tls/trust.ts';
import { createScratch } from '../support/scratch.ts';
import { projectRoot, runToEnd } from '../support/spawned-process.ts';
import { listenTls, shakeHands } from './handshake.ts';

const webCa = createCertificateAuthority({ commonName: 'The web' });
const corporateCa = createCertificateAuthority({ commonName: 'The company' });
const ownCa = createCertificateAuthority({ commonName: 'Ourselves' });
const rootsPem = [webCa.certificatePem];
const origin = { host: 'origin.test', kind: 'name' } as const;

describe('an upstream server is believed', () => {
  const life = { notBefore: new Date(Date.now() - 864e5), notAfter: new Date(Date.now() + 864e5) };
  const ownKeyElsewhere = toCertificatePem(
    signRoot('Ourselves', createPrivateKey(ownCa.privateKeyPem), life),
  );
  const rows: readonly {
    what: string;
    server: CertificateAuthority;
    set: TrustSet;
    error: string | undefined;
  }[] = [
    {
      what: 'when a root vouches for it',
      server: webCa,
      set: createTrustSet({ rootsPem }),
      error: undefined,
    },
    {
      what: 'when an extra root does',
      server: corporateCa,
      set: createTrustSet({ rootsPem, extraPem: corporateCa.certificatePem }),
      error: undefined,
    },
    {
      what: 'not when nobody does',
      server: corporateCa,
      set: createTrustSet({ rootsPem }),
      error: 'SELF_SIGNED_CERT_IN_CHAIN',
    },
    {
      what: 'not when no root is trusted at all',
      server: webCa,
      set: createTrustSet({ rootsPem: [] }),
      error: 'SELF_SIGNED_CERT_IN_CHAIN',
    },
    {
      what: 'not when we do, though the system trusts us',
      server: ownCa,
      set: createTrustSet({ rootsPem: [...rootsPem, ownCa.certificatePem], without: ownCa }),
      error: 'SELF_SIGNED_CERT_IN_CHAIN',
    },
    {
      what: 'not when we do, though the operator lists us',
      server: ownCa,
      set: createTrustSet({ rootsPem, extraPem: ownCa.certificatePem, without: ownCa }),
      error: 'SELF_SIGNED_CERT_IN_CHAIN',
    },
    {
      what: 'not when our key does from another certificate',
      server: ownCa,
      set: createTrustSet({ rootsPem, extraPem: ownKeyElsewhere, without: ownCa }),
      error: 'SELF_SIGNED_CERT_IN_CHAIN',
    },
    {
      what: 'by the others while we are left out',
      server: webCa,
      set: createTrustSet({ rootsPem: [...rootsPem, ownCa.certificatePem], without: ownCa }),
      error: undefined,
    },
  ];

  it.each(rows)('$what', async ({ server, set, error }) => {
    const cache = createLeafCache(server);
    await using listener = await listenTls(() => cache.contextFor(origin));
    const shaken = await shakeHands(listener.port, { servername: origin.host, secureContext: set.context });
    expect(shaken.error).toBe(error);
  });

  it('whose key sits in another certificate of ours would otherwise have been believed', async () => {
    const cache = createLeafCache(ownCa);
    await using listener = await listenTls(() => cache.contextFor(origin));
    const { context } = createTrustSet({ rootsPem, extraPem: ownKeyElsewhere });
    const shaken = await shakeHands(listener.port, { servername: origin.host, secureContext: context });
    expect(shaken.error).toBeUndefined();
  });

  it('not by a CA of NODE_EXTRA_CA_CERTS', async () => {
    await using scratch = await createScratch();
    const cache = createLeafCache(corporateCa);
    await using listener = await listenTls(() => cache.contextFor(origin));
    const program = await scratch.write(
      'client.ts',
      `
      import { connect } from 'node:tls';
      import { createTrustSet } from ${JSON.stringify(join(projectRoot, 'src/tls/trust.ts'))};
      const options = { host: '127.0.0.1', port: ${listener.port}, servername: 'origin.test' };
      const attempt = (more) => new Promise((resolve) => {
        const socket = connect({ ...options, ...more }, () => resolve('believed'));
        socket.on('error', (error) => resolve(error.code));
      });
      const { context } = createTrustSet({});
      console.log(await attempt({}), await attempt({ secureContext: context }));
      process.exit();
    `,
    );
    const env = { NODE_EXTRA_CA_CERTS: await scratch.write('extra.pem', corporateCa.certificatePem) };
    const { stdout } = await runToEnd(process.execPath, [program], { env });
    expect(stdout).toBe('believed SELF_SIGNED_CERT_IN_CHAIN\n');
  });
});

describe('a trust set', () => {
  const both = [webCa.certificatePem, corporateCa.certificatePem];

  it('has an id that changes with its certificates', () => {
    const sets = [{ rootsPem }, { rootsPem: both }, { rootsPem: [] }, { rootsPem: both, without: webCa }];
    expect(new Set(sets.map((set) => createTrustSet(set).id)).size).toBe(4);
  });

  it('has one id for one content, whatever the order, repetition, spelling and source', () => {
    const respelt = `Subject: The web\n${webCa.certificatePem.replaceAll('\n', '\r\n')}`;
    const { id } = createTrustSet({ rootsPem: both });
    expect(createTrustSet({ rootsPem: both.toReversed() }).id).toBe(id);
    expect(createTrustSet({ rootsPem: [...both, ...both] }).id).toBe(id);
    expect(createTrustSet({ rootsPem: [corporateCa.certificatePem], extraPem: respelt }).id).toBe(id);
    expect(createTrustSet({ rootsPem: [...both, ownCa.certificatePem], without: ownCa }).id).toBe(id);
  });

  it('leaves out a root with our key in the compressed form of its point', () => {
    const pem = withCompressedKey(ownCa);
    expect(createTrustSet({ rootsPem: [webCa.certificatePem, pem] }).certificates).toHaveLength(2);
    const { certificates } = createTrustSet({ rootsPem: [webCa.certificatePem, pem], without: ownCa });
    expect(certificates).toEqual(rootsPem);
  });

  it('leaves out a root with our RSA key', () => {
    const rsaCa = createCertificateAuthority({ keyType: 'rsa' });
    const both = [webCa.certificatePem, rsaCa.certificatePem];
    expect(createTrustSet({ rootsPem: both, without: rsaCa }).certificates).toEqual(rootsPem);
  });

  it('lists what it trusts, each certificate once', () => {
    const { certificates } = createTrustSet({ rootsPem: both, extraPem: both.join('\n'), without: ownCa });
    expect(certificates).toEqual(both);
  });

  it('begins with the roots of the system, or where it has none with those that come with Node', () => {
    const system = getCACertificates('system');
    const expected = system.length > 0 ? system : getCACertificates('bundled');
    const found = parseCertificates(createTrustSet({ without: ownCa }).certificates.join(''));
    const wanted = parseCertificates(expected.join('\n'));
    if (typeof found === 'number' || typeof wanted === 'number') expect.unreachable('a root cannot be read');
    expect(new Set(found.map((each) => each.fingerprint256))).toEqual(
      new Set(wanted.map((each) => each.fingerprint256)),
    );
    expect(found.length).toBeGreaterThan(50);
  });

  it.each([
    { what: 'no certificate', extraPem: 'hello', says: 'contains no PEM certificate' },
    {
      what: 'a certificate that is cut off',
      extraPem: both.join('').slice(0, -100),
      says: 'certificate 2 of the extra CA file (upstream.ca_file) is not valid PEM',
    },
    {
      what: 'a certificate with a letter too much',
      extraPem: webCa.certificatePem.replace('\nMII', '\nMMII'),
      says: 'certificate 1 of the extra CA file (upstream.ca_file) is not valid PEM',
    },
  ])('is not created from extra roots with $what', ({ extraPem, says }) => {
    expect(() => createTrustSet({ rootsPem, extraPem })).toThrow(says);
  });
});

/** The certificate with its public key spelt in another way. The lengths in it and its signature are wrong then. */
function withCompressedKey({ certificateDer }: CertificateAuthority): string {
  const { x } = new X509Certificate(certificateDer).publicKey.export({ format: 'jwk' });
  const at = certificateDer.indexOf(Buffer.from(x ?? '', 'base64url'));
  const point = Buffer.concat([Buffer.from([2]), certificateDer.subarray(at, at + 32)]);
  return toCertificatePem(
    Buffer.concat([certificateDer.subarray(0, at - 1), point, certificateDer.subarray(at + 64)]),
  );
}

it('the CAs of sandboxes are ours as long as they are listed', () => {
  const set = createTrustSet({ rootsPem, without: ownCa, extraPem: corporateCa.certificatePem });
  const leafOf = (ca: CertificateAuthority): X509Certificate =>
    new X509Certificate(ca.issueLeaf(origin, new Date()).chainPem);
  const shown = (ca: CertificateAuthority): boolean => {
    const root = new X509Certificate(ca.certificatePem);
    return set.showsOwnKey(leafOf(ca)) || set.showsOwnKey(root);
  };
  expect([ownCa, corporateCa].map(shown)).toEqual([true, false]);
  set.ownKeys.add(corporateCa.spkiSha256);
  expect([ownCa, corporateCa].map(shown)).toEqual([true, true]);
  set.ownKeys.delete(corporateCa.spkiSha256);
  expect([ownCa, corporateCa].map(shown)).toEqual([true, false]);
});
