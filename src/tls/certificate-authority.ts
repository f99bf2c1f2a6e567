// The CA that vouches for intercepted hosts: made anew, or loaded and refused when it could not serve or when
// its key lies open. Knows nothing of caches, connections and policy.
import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  X509Certificate,
} from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { certifiedKey, issuerOf, type LeafSubject, signLeaf, signRoot } from './certificate.ts';
import { certificateBlocks, toCertificatePem } from './pem.ts';
import { createFiles, isPresent, readKeyFile } from './pem-files.ts';

/** A leaf as a TLS server takes it: leaf and CA certificate, the leaf's key, the end of its life. */
export type IssuedLeaf = { readonly chainPem: string; readonly keyPem: string; readonly notAfter: Date };

export type CertificateAuthority = {
  /** The CA certificate, and nothing else: what clients are to trust. */
  readonly certificatePem: string;
  readonly certificateDer: Buffer;
  /** As `openssl x509 -fingerprint -sha256` prints it: hex pairs with colons. */
  readonly fingerprintSha256: string;
  /** Base64 of the SHA-256 of the public key (SPKI, DER), as curl's --pinnedpubkey takes it. */
  readonly spkiSha256: string;
  /** Signs a leaf of at most 72 hours. About 0.1 ms, synchronous. */
  issueLeaf(subject: LeafSubject, now: Date): IssuedLeaf;
};

export type CertificateAuthorityFiles = { readonly certificateFile: string; readonly keyFile: string };

/** Clients whose clock is behind ours still accept a leaf that was made a moment ago. */
export const leafBackdateMs = 3_600_000;
const LEAF_LIFE_MS = 72 * 3_600_000;
const CA_BACKDATE_MS = 24 * 3_600_000;
const CA_LIFE_MS = 3_652 * 24 * 3_600_000;
// What TLS clients verify; a leaf signed by a key beyond these would be minted and never accepted.
const SIGNING_CURVES: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1'];
const MIN_RSA_BITS = 2048;

// One key for every leaf of the process: a flood of host names costs signatures, never keys.
const leafKey = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const leafPublicKey = certifiedKey(leafKey.publicKey);
const leafKeyPem = leafKey.privateKey.export({ type: 'pkcs8', format: 'pem' });

/** A CA of about ten years, backdated by a day. Its key stays in memory unless the caller stores it. */
export function createCertificateAuthority(
  options: { keyType?: 'p256' | 'rsa'; now?: Date; commonName?: string } = {},
): CertificateAuthority & { readonly privateKeyPem: string } {
  const { publicKey, privateKey } =
    options.keyType === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const now = options.now?.getTime() ?? Date.now();
  const shortId = spkiDigest(publicKey).toString('hex').slice(0, 8);
  const der = signRoot(options.commonName ?? `Sallyport CA ${shortId}`, privateKey, {
    notBefore: new Date(now - CA_BACKDATE_MS),
    notAfter: new Date(now - CA_BACKDATE_MS + CA_LIFE_MS),
  });
  const certificate = new X509Certificate(der);
  const privateKeyPem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  return { ...authorityOf(certificate, privateKey, ''), privateKeyPem };
}

/**
 * Loads a CA. Certificates after the first in its file are intermediates, sent along in every chain.
 * Throws an Error that names the file, what was found and how to mend it.
 */
export async function loadCertificateAuthority(
  files: CertificateAuthorityFiles,
): Promise<CertificateAuthority> {
  const key = parseKey(await readKeyFile(files.keyFile), files.keyFile);
  const [own, ...above] = certificateBlocks(await readFile(files.certificateFile, 'utf8'));
  const certificate = parseCertificate(own, files.certificateFile);
  refuseUnfit(certificate, key, files);
  return authorityOf(certificate, key, above.join(''));
}

/** Loads the pair, or makes one where neither file exists. Half a pair is refused: making one would overwrite. */
export async function loadOrCreateCertificateAuthority(
  files: CertificateAuthorityFiles,
): Promise<{ readonly ca: CertificateAuthority; readonly created: boolean }> {
  const hasCertificate = await isPresent(files.certificateFile);
  const hasKey = await isPresent(files.keyFile);
  if (hasCertificate !== hasKey) {
    const [found, missing] = hasKey
      ? [files.keyFile, files.certificateFile]
      : [files.certificateFile, files.keyFile];
    throw new Error(
      `${missing}: missing, though ${found} exists; restore it, or remove ${found} to have a fresh pair made`,
    );
  }
  if (hasKey) return { ca: await loadCertificateAuthority(files), created: false };
  const { privateKeyPem, ...ca } = createCertificateAuthority();
  const created = await createFiles([
    { file: files.keyFile, text: privateKeyPem, mode: 0o600 },
    { file: files.certificateFile, text: ca.certificatePem, mode: 0o644 },
  ]);
  return created ? { ca, created } : { ca: await loadCertificateAuthority(files), created };
}

function authorityOf(
  certificate: X509Certificate,
  key: KeyObject,
  intermediatesPem: string,
): CertificateAuthority {
  const certificateDer = certificate.raw;
  const certificatePem = toCertificatePem(certificateDer);
  const issuer = issuerOf(certificateDer, key);
  const lifeStart = certificate.validFromDate.getTime();
  const lifeEnd = certificate.validToDate.getTime();
  return {
    certificatePem,
    certificateDer,
    fingerprintSha256: certificate.fingerprint256,
    spkiSha256: spkiDigest(certificate.publicKey).toString('base64'),
    issueLeaf(subject, now) {
      // Never outside the CA's own life: strict verifiers refuse a chain that does not nest.
      const notBefore = new Date(Math.max(now.getTime() - leafBackdateMs, lifeStart));
      const notAfter = new Date(Math.min(notBefore.getTime() + LEAF_LIFE_MS, lifeEnd));
      const leaf = toCertificatePem(signLeaf(issuer, subject, leafPublicKey, { notBefore, notAfter }));
      return { chainPem: leaf + certificatePem + intermediatesPem, keyPem: leafKeyPem, notAfter };
    },
  };
}

function parseKey(pem: string, file: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new Error(
      `${file}: no private key that can be read; it must be unencrypted PEM, as \`openssl pkey -in ${file}\` prints it`,
      { cause },
    );
  }
}

function parseCertificate(pem: string | undefined, file: string): X509Certificate {
  try {
    if (pem === undefined) throw new Error('no CERTIFICATE block');
    return new X509Certificate(pem);
  } catch (cause) {
    throw new Error(
      `${file}: no certificate that can be read; it must be PEM, as \`openssl x509 -in ${file}\` prints it`,
      { cause },
    );
  }
}

function refuseUnfit(certificate: X509Certificate, key: KeyObject, files: CertificateAuthorityFiles): void {
  const { certificateFile, keyFile } = files;
  // True only for basicConstraints CA:TRUE and a keyUsage, if there is one, with keyCertSign.
  if (!certificate.ca) {
    throw new Error(
      `${certificateFile}: not a CA certificate (basicConstraints CA:TRUE, keyUsage keyCertSign); name a CA's, or remove both files to have a pair made`,
    );
  }
  if (!certificate.checkPrivateKey(key)) {
    throw new Error(`${keyFile}: not the key of ${certificateFile}; name the two files of one pair`);
  }
  if (certificate.validToDate.getTime() <= Date.now()) {
    throw new Error(
      `${certificateFile}: expired on ${certificate.validTo}; remove it and ${keyFile} to have a pair made, and let the clients trust that`,
    );
  }
  const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {};
  const isUsable =
    key.asymmetricKeyType === 'ec'
      ? SIGNING_CURVES.includes(namedCurve)
      : key.asymmetricKeyType === 'rsa' && modulusLength >= MIN_RSA_BITS;
  if (!isUsable) {
    throw new Error(
      `${keyFile}: a ${key.asymmetricKeyType} key that TLS clients do not accept; use EC P-256, P-384 or P-521, or RSA of 2048 bits or more`,
    );
  }
}

function spkiDigest(publicKey: KeyObject): Buffer {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();
}
