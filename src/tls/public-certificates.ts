// What a client must trust, as PEM text: the proxy's CA certificate, and a bundle of it and the system's roots.
import type { CertificateAuthority } from './certificate-authority.ts';
import { certificateBlocks } from './pem.ts';
import type { TrustSet } from './trust.ts';

export type PublicCertificates = {
  readonly caPem: string;
  /** The CA certificate and the system's roots. Read at the first use; one buffer for all responses. */
  readonly bundlePem: Buffer;
  /** SHA-256 of the CA certificate: 64 lower-case hex digits. */
  readonly fingerprint: string;
};

/** The operator's own roots are left out: they are for the proxy, and their names may describe an internal network. */
export function createPublicCertificates(
  ca: Pick<CertificateAuthority, 'certificatePem' | 'fingerprintSha256'>,
  trust: Pick<TrustSet, 'systemRoots'>,
): PublicCertificates {
  let bundle: Buffer | undefined;
  return {
    caPem: ca.certificatePem,
    get bundlePem() {
      bundle ??= Buffer.from(joinCertificates([ca.certificatePem, ...trust.systemRoots]));
      return bundle;
    },
    fingerprint: ca.fingerprintSha256.replaceAll(':', '').toLowerCase(),
  };
}

/** Each certificate once. Only certificates: a file may hold a private key beside them. */
export function joinCertificates(texts: readonly string[]): string {
  const blocks = texts.flatMap(certificateBlocks);
  return [...new Set(blocks.map((block) => `${block.replaceAll('\r', '')}\n`))].join('');
}
