import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createRotatingAuthority, expiryWarning, TAIL_MS } from '../../src/tls/authority-rotation.ts';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import { createTrustSet } from '../../src/tls/trust.ts';
import { createPublicCertificates } from '../../src/tls/public-certificates.ts';

const DAY_MS = 24 * 3_600_000;
const start = Date.now();
const first = createCertificateAuthority({ commonName: 'First' });
const second = createCertificateAuthority({ commonName: 'Second' });

function rotate() {
  const clock = { now: start };
  const ca = createRotatingAuthority(first, () => clock.now);
  ca.follow({ ca: second, signsFrom: new Date(start + 7 * DAY_MS) });
  const signer = (): string => {
    const { chainPem } = ca.issueLeaf({ host: 'api.test', kind: 'name' }, new Date(start));
    const leaf = new X509Certificate(chainPem);
    const isOf = ({ certificatePem }: typeof first) =>
      leaf.verify(new X509Certificate(certificatePem).publicKey);
    return [first, second]
      .map((one) => (isOf(one) ? new X509Certificate(one.certificatePem).subject : ''))
      .join('');
  };
  return { ca, clock, signer };
}

describe('a CA that is followed by another', () => {
  it('alone is trusted alone', () => {
    const ca = createRotatingAuthority(first);
    expect([ca.trustedPem, ca.fingerprintSha256]).toEqual([first.certificatePem, first.fingerprintSha256]);
  });

  it('signs in the overlap, in which both are trusted', () => {
    const { ca, clock, signer } = rotate();
    clock.now = start + 7 * DAY_MS - 1;
    expect(signer()).toBe('CN=First');
    expect(ca.trustedPem).toBe(first.certificatePem + second.certificatePem);
    expect(ca.certificatePem).toBe(first.certificatePem);
  });

  it('is trusted after the overlap as long as a leaf of it may be valid, and signs no more', () => {
    const { ca, clock, signer } = rotate();
    clock.now = start + 7 * DAY_MS;
    expect(signer()).toBe('CN=Second');
    expect([ca.spkiSha256, ca.fingerprintSha256]).toEqual([second.spkiSha256, second.fingerprintSha256]);
    expect(ca.notAfter).toEqual(second.notAfter);
    expect(ca.trustedPem).toBe(first.certificatePem + second.certificatePem);
    clock.now += TAIL_MS;
    expect(ca.trustedPem).toBe(second.certificatePem);
  });

  it('can be followed by none again', () => {
    const { ca, signer } = rotate();
    ca.follow(undefined);
    expect([ca.trustedPem, signer()]).toEqual([first.certificatePem, 'CN=First']);
  });

  it('takes the place of the first, and can be followed in turn', () => {
    const { ca, signer } = rotate();
    ca.succeed();
    expect([ca.next, ca.trustedPem, signer()]).toEqual([undefined, second.certificatePem, 'CN=Second']);
    const third = createCertificateAuthority({ commonName: 'Third' });
    ca.follow({ ca: third, signsFrom: new Date(start + 7 * DAY_MS) });
    expect([ca.trustedPem, signer()]).toEqual([second.certificatePem + third.certificatePem, 'CN=Second']);
  });

  it('is trusted for no upstream, in the roots of the system either, whichever of the two signs', () => {
    const other = createCertificateAuthority({ commonName: 'Other' });
    const rootsPem = [first, second, other].map(({ certificatePem }) => certificatePem);
    const { ca, clock } = rotate();
    for (const days of [0, 7, 30]) {
      clock.now = start + days * DAY_MS;
      const trust = createTrustSet({ without: ca, rootsPem });
      expect(trust.certificates).toEqual([other.certificatePem]);
      expect(trust.ownKeys).toEqual(new Set([first.spkiSha256, second.spkiSha256]));
    }
  });

  it('changes the name of the file that clients store the bundle in', () => {
    const { ca, clock } = rotate();
    const roots = { pem: Buffer.from('roots') };
    const certificates = createPublicCertificates(ca, roots);
    const before = createPublicCertificates(first, roots).fingerprint;
    const during = certificates.fingerprint;
    clock.now = start + 7 * DAY_MS + TAIL_MS;
    const after = certificates.fingerprint;
    expect(new Set([before, during, after]).size).toBe(3);
    expect(during).toMatch(/^[0-9a-f]{64}$/);
    expect(certificates.caPem).toBe(second.certificatePem);
  });
});

describe('the end of a CA', () => {
  it.each([
    [31 * DAY_MS, undefined],
    [30 * DAY_MS, /ends in 30 days, on .*Z: create the next one by `sallyport ca rotate`/],
    [DAY_MS / 2, /ends in 0 days/],
    [-DAY_MS, /ends in 0 days/],
  ])('%i ms before it', (leftMs, message) => {
    const warning = expiryWarning(new Date(start + leftMs), start);
    if (message === undefined) expect(warning).toBeUndefined();
    else expect(warning).toMatch(message);
  });
});
