// What a client must trust, as PEM text: the proxy's CA certificate, in a rotation two, and a bundle of that and the system's roots.
import { hash } from 'node:crypto';
import type { CertificateAuthority } from './certificate-authority.ts';
import { certificateBlocks } from './pem.ts';
import type { TrustSet } from './trust.ts';

export type PublicCertificates = {
  readonly caPem: string;
  /** The CA certificate and the system's roots, in parts: the roots are one buffer for all CAs and all responses. */
  readonly bundle: readonly Buffer[];
  /** SHA-256 of the CA certificate, in a rotation of the text of both: 64 lower-case hex digits. */
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
  ca: Pick<CertificateAuthority, 'certificatePem' | 'fingerprintSha256' | 'trustedPem'>,
  roots: RootBundle,
): PublicCertificates {
  // They change in a rotation.
  return {
    get caPem() {
      return ca.trustedPem ?? ca.certificatePem;
    },
    get bundle() {
      return [Buffer.from(this.caPem), roots.pem];
    },
    get fingerprint() {
      const { trustedPem = ca.certificatePem } = ca;
      if (trustedPem !== ca.certificatePem) return hash('sha256', trustedPem);
      return ca.fingerprintSha256.replaceAll(':', '').toLowerCase();
    },
  };
}

/** Each certificate once. Only certificates: a file may hold a private key beside them. */
export function joinCertificates(texts: readonly string[]): string {
  const blocks = texts.flatMap(certificateBlocks);
  return [...new Set(blocks.map((block) => `${block.replaceAll('\r', '')}\n`))].join('');
}
