// Which CAs are trusted for upstream servers: the system's roots and the operator's, and never the proxy's own CA.
import { createHash, hash, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { CertificateAuthority } from './certificate-authority.ts';
import { blockToDer, certificateBlocks, parseCertificates, toCertificatePem } from './pem.ts';
import { systemRoots } from './system-roots.ts';

export type TrustSet = {
  /** Identifies the content: sets of the same certificates have the same id. */
  readonly id: string;
  /** Created at the first use, once for all connections, because that takes milliseconds. The roots are read then. */
  readonly context: SecureContext;
  readonly certificates: readonly string[];
  /** Those of the system alone, one PEM text each. */
  readonly systemRoots: readonly string[];
  /** The keys (`spkiSha256`) of our CAs: those of `without`, and those that sandboxes have of their own. */
  readonly ownKeys: Set<string>;
  /**
   * Whether the chain that a peer sent, from its leaf upwards, contains one of `ownKeys`. Removing our CA from the roots
   * is not enough where another root has signed it: a leaf of ours would be trusted through that root.
   */
  showsOwnKey(peer: X509Certificate | undefined): boolean;
};

/**
 * The roots (`rootsPem`, one certificate each; by default the system's, or where it has none Node's own) and those of the
 * bundle `extraPem`, without any certificate of the key in the certificate `without`, in a rotation of either key. Throws if one of the bundle cannot be
 * read.
 */
export function createTrustSet(options: {
  extraPem?: string | undefined;
  without?: Pick<CertificateAuthority, 'spkiSha256' | 'certificateDer' | 'own'> | undefined;
  rootsPem?: readonly string[] | undefined;
}): TrustSet {
  const { extraPem, without, rootsPem } = options;
  // Read at once, because only the operator's bundle can have a mistake that must be reported.
  const extra = extraPem === undefined ? [] : parseExtra(extraPem).map(({ raw }) => raw);
  const own = without?.own ?? (without === undefined ? [] : [without]);
  const excluded = own.map(({ certificateDer }) => keyBytes(certificateDer));
  const ownKeys = new Set(own.map((one) => one.spkiSha256));
  let collected: Collected | undefined;
  const collect = (): Collected => (collected ??= collectRoots(rootsPem ?? systemRoots(), extra, excluded));
  let context: SecureContext | undefined;
  return {
    get id() {
      return collect().id;
    },
    get certificates() {
      return collect().certificates;
    },
    get systemRoots() {
      return collect().systemRoots;
    },
    get context() {
      // With `ca` given, Node ignores its own store and NODE_EXTRA_CA_CERTS.
      context ??= createSecureContext({ ca: [...collect().certificates], minVersion: 'TLSv1.2' });
      return context;
    },
    ownKeys,
    showsOwnKey(peer) {
      if (ownKeys.size === 0) return false;
      for (let link = peer; link !== undefined; link = link.issuerCertificate)
        if (ownKeys.has(spkiSha256(link))) return true;
      return false;
    },
  };
}

type Collected = Pick<TrustSet, 'id' | 'certificates' | 'systemRoots'>;

function collectRoots(
  rootsPem: readonly string[],
  extra: readonly Buffer[],
  excluded: readonly Buffer[],
): Collected {
  // An upstream with a leaf of ours is a proxy loop or an attacker. The key is compared, since several certificates may
  // have it.
  const isTrusted = (der: Buffer): boolean => excluded.every((key) => !der.includes(key));
  const trusted = new Map<string, Buffer>();
  const add = (ders: readonly Buffer[]): void => {
    for (const der of ders.filter(isTrusted)) trusted.set(fingerprint(der), der);
  };
  add(rootsPem.flatMap(certificateBlocks).map(blockToDer));
  const rootCount = trusted.size;
  add(extra);
  const certificates = [...trusted.values()].map(toCertificatePem);
  return {
    id: hash('sha256', [...trusted.keys()].toSorted().join(), 'base64url'),
    certificates,
    systemRoots: certificates.slice(0, rootCount),
  };
}

/**
 * The bytes of a certificate's key that are in every encoding of the key: of EC the coordinate x, because a compressed
 * point has no y; of RSA the modulus. So a root is searched for the key and need not be parsed, which takes a tenth of a
 * millisecond for each of 150 roots.
 */
function keyBytes(der: Buffer): Buffer {
  const { x, n } = new X509Certificate(der).publicKey.export({ format: 'jwk' });
  const bytes = Buffer.from(x ?? n ?? '', 'base64url');
  if (bytes.length < MIN_KEY_BYTES) throw new Error('the CA must have an EC or an RSA key');
  return bytes;
}

// Shorter, it could be in a certificate by accident.
const MIN_KEY_BYTES = 32;

function fingerprint(der: Buffer): string {
  return hash('sha256', der, 'base64');
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

function spkiSha256(certificate: X509Certificate): string {
  try {
    const spki = certificate.publicKey.export({ type: 'spki', format: 'der' });
    return createHash('sha256').update(spki).digest('base64');
  } catch {
    return ''; // an algorithm that OpenSSL does not support, so the key is not ours
  }
}
