// Which CAs are trusted for upstream servers: the system's roots and the operator's, and never the proxy's own CA.
import { createHash, X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { parseCertificates } from './pem.ts';

export type TrustSet = {
  /** Identifies the content: sets of the same certificates have the same id. */
  readonly id: string;
  /** Created once for all connections, because that takes milliseconds. */
  readonly context: SecureContext;
  readonly certificates: readonly string[];
  /**
   * Whether the chain that a peer sent, from its leaf upwards, contains the key `without`. Removing our CA from the roots
   * is not enough where another root has signed it: a leaf of ours would be trusted through that root.
   */
  showsOwnKey(peer: X509Certificate | undefined): boolean;
};

/**
 * The roots (`rootsPem`, one certificate each; by default the system's, or where it has none Node's own) and those of the
 * bundle `extraPem`, without any certificate of the key `without`. Throws if one cannot be read.
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
    // An upstream with a leaf of ours is a proxy loop or an attacker. The key is compared, since several certificates may
    // have it.
    if (without !== undefined && spkiSha256(certificate) === without.spkiSha256) continue;
    trusted.set(certificate.fingerprint256, certificate.toString());
  }
  const certificates = [...trusted.values()];
  return {
    id: createHash('sha256')
      .update([...trusted.keys()].toSorted().join())
      .digest('base64url'),
    // With `ca` given, Node ignores its own store and NODE_EXTRA_CA_CERTS.
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

/** PEM, one certificate each: the system's roots, or where it has none Node's own. */
export function systemRoots(): readonly string[] {
  const system = getCACertificates('system');
  return system.length > 0 ? system : getCACertificates('bundled');
}

function parseExtra(pem: string): readonly X509Certificate[] {
  const certificates = parseCertificates(pem);
  if (typeof certificates === 'number')
    throw new Error(`certificate ${certificates} of the extra CA file (upstream.ca_file) is not valid PEM`);
  if (certificates.length === 0)
    throw new Error(
      'the extra CA file (upstream.ca_file) contains no PEM certificate, -----BEGIN CERTIFICATE-----',
    );
  return certificates;
}

function spkiSha256(certificate: X509Certificate): string | undefined {
  try {
    const spki = certificate.publicKey.export({ type: 'spki', format: 'der' });
    return createHash('sha256').update(spki).digest('base64');
  } catch {
    return undefined; // an algorithm that OpenSSL does not support, so the key is not ours
  }
}
