import { expect, it } from 'vitest';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import { parseCertificates } from '../../src/tls/pem.ts';
import {
  createPublicCertificates,
  createRootBundle,
  joinCertificates,
} from '../../src/tls/public-certificates.ts';
import { createTrustSet } from '../../src/tls/trust.ts';

const web = createCertificateAuthority({ commonName: 'The web' });
const company = createCertificateAuthority({ commonName: 'The company' });
const own = createCertificateAuthority({ commonName: 'Ourselves' });

function subjects(pem: string): readonly string[] {
  const certificates = parseCertificates(pem);
  if (typeof certificates === 'number') throw new Error(`certificate ${certificates} cannot be read`);
  return certificates.map(({ subject }) => subject);
}

it('the bundle has our certificate and the system’s roots, each once, and none of the operator’s', () => {
  const trust = createTrustSet({
    rootsPem: [web.certificatePem, web.certificatePem, own.certificatePem],
    extraPem: company.certificatePem,
    without: own,
  });
  const { caPem, bundle, fingerprint } = createPublicCertificates(own, createRootBundle(trust));
  expect(subjects(caPem)).toEqual(['CN=Ourselves']);
  expect(subjects(Buffer.concat(bundle).toString())).toEqual(['CN=Ourselves', 'CN=The web']);
  expect(fingerprint).toMatch(/^[0-9a-f]{64}$/);
  expect(fingerprint).toBe(own.fingerprintSha256.replaceAll(':', '').toLowerCase());
});

it('the roots are read when a bundle is first used, and are one buffer for all CAs', () => {
  let reads = 0;
  const roots = createRootBundle({
    get systemRoots() {
      reads += 1;
      return [web.certificatePem];
    },
  });
  const certificates = createPublicCertificates(own, roots);
  expect(certificates.caPem).toBe(own.certificatePem);
  expect(reads).toBe(0);
  expect(certificates.bundle[1]).toBe(createPublicCertificates(company, roots).bundle[1]);
  expect(reads).toBe(1);
});

it('only certificates are joined', () => {
  const text = `# a comment\n${own.privateKeyPem}${web.certificatePem.replaceAll('\n', '\r\n')}`;
  expect(joinCertificates([text])).toBe(web.certificatePem);
});
