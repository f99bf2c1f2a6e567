import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import { blockToDer, certificateBlocks, parseCertificates, toCertificatePem } from '../../src/tls/pem.ts';

const one = createCertificateAuthority();
const two = createCertificateAuthority();

describe('toCertificatePem', () => {
  it('writes what Node writes', () => {
    expect(one.certificatePem).toBe(new X509Certificate(one.certificateDer).toString());
  });

  it('has no empty line where the last line is full', () => {
    expect(toCertificatePem(Buffer.alloc(96))).toBe(
      `-----BEGIN CERTIFICATE-----\n${'A'.repeat(64)}\n${'A'.repeat(64)}\n-----END CERTIFICATE-----\n`,
    );
  });
});

describe('certificateBlocks', () => {
  it.each([
    {
      what: 'with LF',
      bundle: `# one\n${one.certificatePem}\n${one.privateKeyPem}${two.certificatePem}# end`,
    },
    { what: 'with CR LF', bundle: (one.certificatePem + two.certificatePem).replaceAll('\n', '\r\n') },
  ])('finds the certificates among other text, $what', ({ bundle }) => {
    expect(certificateBlocks(bundle).map(blockToDer)).toEqual([one.certificateDer, two.certificateDer]);
  });

  it.each([
    { what: 'commented out', bundle: one.certificatePem.replaceAll(/^/gm, '# ') },
    { what: 'behind other text', bundle: `disabled: ${one.certificatePem}` },
    {
      what: 'with characters that are not base64',
      bundle: one.certificatePem.replace('\n', '\n#').replace('-\n-', '-\n'),
    },
  ])('finds none that is $what', ({ bundle }) => {
    expect(certificateBlocks(bundle)).toEqual([]);
  });

  it('finds none that is cut off', () => {
    expect(certificateBlocks(one.certificatePem.slice(0, -30))).toEqual([]);
  });
});

describe('parseCertificates', () => {
  const ders = (bundle: string): unknown => {
    const certificates = parseCertificates(bundle);
    return typeof certificates === 'number' ? certificates : certificates.map(({ raw }) => raw);
  };

  it.each([
    { what: 'one after the other', bundle: one.certificatePem + two.certificatePem },
    { what: 'among comments', bundle: `# one\n${one.certificatePem}\n# two\n${two.certificatePem}# end` },
    { what: 'beside a key', bundle: one.certificatePem + one.privateKeyPem + two.certificatePem },
    { what: 'without a last newline', bundle: one.certificatePem + two.certificatePem.trimEnd() },
    {
      what: 'with the line ends of Windows',
      bundle: (one.certificatePem + two.certificatePem).replaceAll('\n', '\r\n'),
    },
  ])('finds two certificates $what', ({ bundle }) => {
    expect(ders(bundle)).toEqual([one.certificateDer, two.certificateDer]);
  });

  it('finds no certificate in text without one', () => {
    expect(ders('')).toEqual([]);
    expect(ders(one.privateKeyPem)).toEqual([]);
  });

  it('reports which one is unreadable, and does not skip it', () => {
    expect(ders(`${one.certificatePem}-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n`)).toBe(2);
    expect(ders(one.certificatePem.slice(0, 300) + two.certificatePem)).toBe(1);
    expect(ders(one.certificatePem + two.certificatePem.slice(0, 300))).toBe(2);
  });
});
