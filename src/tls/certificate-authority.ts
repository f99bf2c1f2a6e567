// The CA that signs the certificates of intercepted hosts: created, or loaded from its files. It is rejected when clients
// could not verify what it signs, or when its key is readable by others.
import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  X509Certificate,
} from 'node:crypto';
import { certifiedKey, issuerOf, type LeafSubject, signLeaf, signRoot } from './certificate.ts';
import { parseCertificates, toCertificatePem } from './pem.ts';
import { createFiles, fileError, isPresent, readCertificateFile, readKeyFile } from './pem-files.ts';

/** A leaf as a TLS server takes it: leaf and CA certificate, the leaf's key, the end of its validity. */
export type IssuedLeaf = { readonly chainPem: string; readonly keyPem: string; readonly notAfter: Date };

export type CertificateAuthority = {
  /** The CA certificate alone: what clients must trust. */
  readonly certificatePem: string;
  readonly certificateDer: Buffer;
  /** As `openssl x509 -fingerprint -sha256` prints it: hex pairs with colons. */
  readonly fingerprintSha256: string;
  readonly notAfter: Date;
  /** During a rotation: the certificates of both CAs. */
  readonly trustedPem?: string;
  /** During a rotation: both CAs, also the one that signs no more. No upstream may have a leaf of theirs. */
  readonly own?: readonly Pick<CertificateAuthority, 'spkiSha256' | 'certificateDer' | 'fingerprintSha256'>[];
  /** Base64 of the SHA-256 of the public key (SPKI, DER), as curl's --pinnedpubkey takes it. */
  readonly spkiSha256: string;
  /** Signs a leaf of at most 72 hours. About 0.1 ms, synchronous. */
  issueLeaf(subject: LeafSubject, now: Date): IssuedLeaf;
};

export type CertificateAuthorityFiles = { readonly certificateFile: string; readonly keyFile: string };

export type KeyType = 'p256' | 'rsa';

/** A leaf is backdated so that clients whose clock is slow accept a new one. */
export const leafBackdateMs = 3_600_000;
const LEAF_LIFE_MS = 72 * 3_600_000;
const CA_BACKDATE_MS = 24 * 3_600_000;
const CA_LIFE_MS = 3_652 * 24 * 3_600_000;

// One key for every leaf of the process: a flood of host names costs signatures, never key generations.
const leafKey = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const leafPublicKey = certifiedKey(leafKey.publicKey);
const leafKeyPem = leafKey.privateKey.export({ type: 'pkcs8', format: 'pem' });

/** A CA of about ten years, backdated by a day. Its key stays in memory unless the caller stores it. */
export function createCertificateAuthority(
  options: { keyType?: KeyType; now?: Date; commonName?: string } = {},
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
  return { ...authorityOf(certificate, privateKey, []), privateKeyPem };
}

/**
 * Loads a CA. Certificates after the first in its file are intermediates and are sent in every chain.
 * Throws an Error that names the file, what was found and how to correct it.
 */
export async function loadCertificateAuthority(
  files: CertificateAuthorityFiles,
): Promise<CertificateAuthority> {
  const key = parseKey(await readKeyFile(files.keyFile), files.keyFile);
  const certificates = parseCertificates(await readCertificateFile(files.certificateFile));
  const [own, ...above] = Array.isArray(certificates) ? certificates : [];
  if (own === undefined) {
    throw fileError(
      files.certificateFile,
      'no certificate that can be read',
      'It must be PEM, -----BEGIN CERTIFICATE-----',
    );
  }
  const unusable = unusableFor(own, key);
  if (unusable) {
    const { certificateFile, keyFile } = files;
    const [file, other] = unusable.part === 'key' ? [keyFile, certificateFile] : [certificateFile, keyFile];
    throw fileError(file, unusable.found.replace('%', other), unusable.hint);
  }
  return authorityOf(own, key, above);
}

/** A CA of one certificate as text, or what is wrong with which part of it. A message quotes nothing of the texts. */
export function parseCertificateAuthority(texts: {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
}): CertificateAuthority | { readonly part: 'certificate' | 'key'; readonly message: string } {
  const certificates = parseCertificates(texts.certificatePem);
  const [certificate, ...more] = Array.isArray(certificates) ? certificates : [];
  if (certificate === undefined || more.length > 0)
    return { part: 'certificate', message: 'must be one certificate in PEM' };
  const key = readKey(texts.privateKeyPem);
  if (key === undefined) return { part: 'key', message: 'must be one private key in PEM, not encrypted' };
  const unusable = unusableFor(certificate, key);
  if (unusable === undefined) return authorityOf(certificate, key, []);
  return { part: unusable.part, message: `is ${unusable.found.replace('%', 'the certificate')}` };
}

/**
 * Loads the pair, or creates one if neither file exists. If only one of them exists, loading fails: a new pair would
 * replace a key or a certificate that clients already trust.
 */
export async function loadOrCreateCertificateAuthority(
  files: CertificateAuthorityFiles,
  options: { keyType?: KeyType } = {},
): Promise<{ readonly ca: CertificateAuthority; readonly created: boolean }> {
  if (!(await isPresent(files.keyFile)) && !(await isPresent(files.certificateFile))) {
    const { privateKeyPem, ...ca } = createCertificateAuthority(options);
    const created = await createFiles([
      { file: files.keyFile, text: privateKeyPem, mode: 0o600 },
      { file: files.certificateFile, text: ca.certificatePem, mode: 0o644 },
    ]);
    if (created) return { ca, created };
  }
  return { ca: await loadCertificateAuthority(files), created: false };
}

function authorityOf(
  certificate: X509Certificate,
  key: KeyObject,
  above: readonly X509Certificate[],
): CertificateAuthority {
  const certificatePem = toCertificatePem(certificate.raw);
  const chainAbovePem = above.map((each) => toCertificatePem(each.raw)).join('');
  const issuer = issuerOf(certificate.raw, key);
  const lifeStart = certificate.validFromDate.getTime();
  const lifeEnd = certificate.validToDate.getTime();
  return {
    certificatePem,
    certificateDer: certificate.raw,
    fingerprintSha256: certificate.fingerprint256,
    spkiSha256: spkiDigest(certificate.publicKey).toString('base64'),
    notAfter: certificate.validToDate,
    issueLeaf(subject, now) {
      // Never outside the validity of the CA: strict verifiers require that.
      const notBefore = new Date(Math.max(now.getTime() - leafBackdateMs, lifeStart));
      const notAfter = new Date(Math.min(notBefore.getTime() + LEAF_LIFE_MS, lifeEnd));
      const leafPem = toCertificatePem(signLeaf(issuer, subject, leafPublicKey, { notBefore, notAfter }));
      return { chainPem: leafPem + certificatePem + chainAbovePem, keyPem: leafKeyPem, notAfter };
    },
  };
}

function readKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

function parseKey(pem: string, file: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    const hint = 'It must be PEM without a passphrase, -----BEGIN PRIVATE KEY-----';
    throw fileError(file, 'no private key that can be read', hint, cause);
  }
}

type Unusable = { readonly part: 'certificate' | 'key'; readonly found: string; readonly hint: string };

/** Why clients could not verify what the pair signs; `%` in `found` stands for the other part. */
function unusableFor(certificate: X509Certificate, key: KeyObject): Unusable | undefined {
  // True only for basicConstraints CA:TRUE and a keyUsage, if there is one, that has keyCertSign.
  if (!certificate.ca) {
    const found = 'not a CA certificate (basicConstraints CA:TRUE, keyUsage keyCertSign)';
    const hint = 'Use a CA certificate, or remove both files to create a new pair';
    return { part: 'certificate', found, hint };
  }
  if (!certificate.checkPrivateKey(key))
    return { part: 'key', found: 'not the key of %', hint: 'Use the two files of one pair' };
  const now = Date.now();
  if (certificate.validFromDate.getTime() > now || certificate.validToDate.getTime() <= now) {
    const found = `outside its validity, ${certificate.validFrom} to ${certificate.validTo}`;
    const hint = 'Set the clock, or remove both files to create a new pair, which clients must then trust';
    return { part: 'certificate', found, hint };
  }
  if (isSigningKey(key)) return undefined;
  const hint = 'Use EC P-256, P-384 or P-521, or RSA of 2048 bits or more';
  return { part: 'key', found: 'a kind of key that TLS clients do not accept', hint };
}

/** TLS clients would not accept a leaf that is signed by any other key. */
function isSigningKey(key: KeyObject): boolean {
  const { namedCurve = '', modulusLength = 0 } = key.asymmetricKeyDetails ?? {};
  if (key.asymmetricKeyType === 'rsa') return modulusLength >= 2048;
  return key.asymmetricKeyType === 'ec' && ['prime256v1', 'secp384r1', 'secp521r1'].includes(namedCurve);
}

function spkiDigest(publicKey: KeyObject): Buffer {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();
}
