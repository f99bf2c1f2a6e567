// Who may vouch for an upstream server: the machine's roots and the operator's, and never our own CA.
// Knows nothing of connections.
import { createHash, X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { parseCertificates } from './pem.ts';

export type TrustSet = {
  /** Names the content: sets of the same certificates have the same id. */
  readonly id: string;
  /** Built once for all connections: building takes milliseconds. */
  readonly context: SecureContext;
  readonly certificates: readonly string[];
  /**
   * Whether a chain that a peer showed, from its leaf upwards, holds the key `without`. Leaving our CA out of the
   * roots is not enough where another root has signed it: what we mint would pass by way of that one.
   */
  showsOwnKey(peer: X509Certificate | undefined): boolean;
};

/**
 * The roots (`rootsPem`, one certificate each; by default the system's, or where it has none those that come
 * with Node) and those of the bundle `extraPem`, without any certificate of the key `without`. Throws if one
 * cannot be read.
 */
export function createTrustSet(options: {
  extraPem?: string | undefined;
  without?: { readonly spkiSha256: string } | undefined;
  rootsPem?: readonly string[] | undefined;
}): TrustSet {
  const { extraPem, without, rootsPem = systemRoots() } = options;
  const roots = [...new Set(rootsPem)].map((pem) => new X509Certificate(pem));
  const extra = extraPem === undefined ? [] : parseExtra(extraPem);
  const trusted = new Map<string, string>();
  for (const certificate of [...roots, ...extra]) {
    // An origin that shows a leaf of ours is a loop or a thief. The key decides: several certificates may hold it.
    if (without !== undefined && spkiSha256(certificate) === without.spkiSha256) continue;
    trusted.set(certificate.fingerprint256, certificate.toString());
  }
  const certificates = [...trusted.values()];
  return {
    id: createHash('sha256')
      .update([...trusted.keys()].toSorted().join())
      .digest('base64url'),
    // With `ca` given, Node's own store and NODE_EXTRA_CA_CERTS count for nothing.
    context: createSecureContext({ ca: certificates, minVersion: 'TLSv1.2' }),
    certificates,
    showsOwnKey(peer) {
      if (without === undefined) return false;
      for (let link = peer; link !== undefined; link = link.issuerCertificate)
        if (spkiSha256(link) === without.spkiSha256) return true;
      return false;
    },
  };
}

/** PEM, one certificate each: the system's, or where it has none those that come with Node. */
export function systemRoots(): readonly string[] {
  const system = getCACertificates('system');
  return system.length > 0 ? system : getCACertificates('bundled');
}

function parseExtra(pem: string): readonly X509Certificate[] {
  const certificates = parseCertificates(pem);
  if (typeof certificates === 'number')
    throw new Error(`extra CA certificate ${certificates} cannot be read as PEM`);
  if (certificates.length === 0)
    throw new Error('no extra CA certificate found; they must be PEM, -----BEGIN CERTIFICATE-----');
  return certificates;
}

function spkiSha256(certificate: X509Certificate): string | undefined {
  try {
    const spki = certificate.publicKey.export({ type: 'spki', format: 'der' });
    return createHash('sha256').update(spki).digest('base64');
  } catch {
    return undefined; // an algorithm that OpenSSL does not know, and so not ours
  }
}
