// Whom an upstream server may be vouched for by: the machine's roots and the operator's, never ourselves.
// Knows nothing of connections.
import { createHash, X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { certificateBlocks } from './pem.ts';

/** `id` names the content: equal sets have equal ids, whatever the order of their certificates. */
export type TrustSet = {
  readonly id: string;
  readonly context: SecureContext;
  readonly certificates: readonly string[];
};

/**
 * Builds a trust set: the roots (PEM; default the system's, else Mozilla's as Node ships them) and `extraPem`,
 * minus every certificate of the key `without`. One context, because building it takes milliseconds.
 * Throws on certificates that cannot be read.
 */
export function createTrustSet(options: {
  extraPem?: string | undefined;
  without?: { readonly spkiSha256: string } | undefined;
  rootsPem?: readonly string[] | undefined;
}): TrustSet {
  const roots = (options.rootsPem ?? defaultRoots()).map((pem) => parse(pem, 'root'));
  const extra = extraBlocks(options.extraPem).map((pem, index) =>
    parse(pem, `extra certificate ${index + 1}`),
  );
  const byFingerprint = new Map([...roots, ...extra].map((each) => [each.fingerprint256, each]));
  // An origin that shows a leaf of ours is a loop or a thief. Our key counts, in whatever certificate it sits.
  const trusted = [...byFingerprint].filter(([, each]) => spkiSha256(each) !== options.without?.spkiSha256);
  const certificates = trusted.map(([, each]) => each.toString());
  return {
    id: createHash('sha256')
      .update(
        trusted
          .map(([fingerprint]) => fingerprint)
          .toSorted()
          .join(),
      )
      .digest('base64url'),
    // With `ca` given, NODE_EXTRA_CA_CERTS and Node's own store count for nothing.
    context: createSecureContext({ ca: certificates, minVersion: 'TLSv1.2' }),
    certificates,
  };
}

function defaultRoots(): readonly string[] {
  const system = getCACertificates('system');
  return system.length > 0 ? system : getCACertificates('bundled');
}

function extraBlocks(pem: string | undefined): readonly string[] {
  if (pem === undefined) return [];
  const blocks = certificateBlocks(pem);
  if (blocks.length === 0)
    throw new Error('no certificate found: extra roots are PEM, -----BEGIN CERTIFICATE-----');
  return blocks;
}

function parse(pem: string, what: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new Error(`${what} cannot be read as PEM`, { cause });
  }
}

function spkiSha256(certificate: X509Certificate): string {
  const spki = certificate.publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('base64');
}
