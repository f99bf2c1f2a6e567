// What a client must trust, as PEM text: the proxy's CA certificate, and a bundle of it and the system's roots.
import type { CertificateAuthority } from './certificate-authority.ts';
import { certificateBlocks } from './pem.ts';
import type { TrustSet } from './trust.ts';

export type PublicCertificates = {
  readonly caPem: string;
  /** The CA certificate and the system's roots, in parts: the roots are one buffer for all CAs and all responses. */
  readonly bundle: readonly Buffer[];
  /** SHA-256 of the CA certificate: 64 lower-case hex digits. */
  readonly fingerprint: string;
};

/** The roots of the system as one text, which is read and made at the first use. */
export type RootBundle = { readonly pem: Buffer };

/** The operator's own roots are left out: they are for the proxy, and their names may describe an internal network. */
export function createRootBundle(trust: Pick<TrustSet, 'systemRoots'>): RootBundle {
  let pem: Buffer | undefined;
  return {
    get pem() {
      pem ??= Buffer.from(joinCertificates(trust.systemRoots));
      return pem;
    },
  };
}

export function createPublicCertificates(
  ca: Pick<CertificateAuthority, 'certificatePem' | 'fingerprintSha256'>,
  roots: RootBundle,
): PublicCertificates {
  return {
    caPem: ca.certificatePem,
    get bundle() {
      return [Buffer.from(ca.certificatePem), roots.pem];
    },
    fingerprint: ca.fingerprintSha256.replaceAll(':', '').toLowerCase(),
  };
}

/** Each certificate once. Only certificates: a file may hold a private key beside them. */
export function joinCertificates(texts: readonly string[]): string {
  const blocks = texts.flatMap(certificateBlocks);
  return [...new Set(blocks.map((block) => `${block.replaceAll('\r', '')}\n`))].join('');
}
