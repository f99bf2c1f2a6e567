// Writes the truststore that Java reads: a PKCS#12 file (RFC 7292) of certificates, without a key, a password or a
// checksum, because nothing in it is secret. By hand, because node-forge writes neither certificates with EC keys nor the
// attribute by which Java tells a trusted certificate from one of a key's chain.

/** The certificates (DER) as one truststore. Java 8 and newer read it without a password. */
export function encodeTruststore(certificates: readonly Buffer[]): Buffer {
  const bags = certificates.map((der, i) => certificateBag(der, `sallyport-${i + 1}`));
  const authenticatedSafe = sequence(dataContent(sequence(...bags)));
  return sequence(element(Tag.integer, Buffer.of(3)), dataContent(authenticatedSafe));
}

const Tag = {
  integer: 0x02,
  octets: 0x04,
  oid: 0x06,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
  /** [0], explicit. */
  context: 0xa0,
} as const;

const Oid = {
  data: '1.2.840.113549.1.7.1',
  friendlyName: '1.2.840.113549.1.9.20',
  x509Certificate: '1.2.840.113549.1.9.22.1',
  certificateBag: '1.2.840.113549.1.12.10.1.3',
  /** Oracle's attribute of certificates that are trusted, and its value for every purpose. */
  trustedKeyUsage: '2.16.840.1.113894.746875.1.1',
  anyExtendedKeyUsage: '2.5.29.37.0',
} as const;

/** RFC 7292 §4.2.3. `alias`: ASCII; each must be unique, or one entry replaces another. */
function certificateBag(der: Buffer, alias: string): Buffer {
  const certificate = sequence(oid(Oid.x509Certificate), context(element(Tag.octets, der)));
  const attributes = [
    attribute(Oid.friendlyName, element(Tag.bmpString, Buffer.from(alias, 'utf16le').swap16())),
    attribute(Oid.trustedKeyUsage, oid(Oid.anyExtendedKeyUsage)),
  ];
  // DER orders the elements of a set by their bytes.
  const set = element(Tag.set, ...attributes.toSorted(Buffer.compare));
  return sequence(oid(Oid.certificateBag), context(certificate), set);
}

function attribute(id: string, value: Buffer): Buffer {
  return sequence(oid(id), element(Tag.set, value));
}

/** A ContentInfo of type data. */
function dataContent(content: Buffer): Buffer {
  return sequence(oid(Oid.data), context(element(Tag.octets, content)));
}

function sequence(...elements: readonly Buffer[]): Buffer {
  return element(Tag.sequence, ...elements);
}

function context(content: Buffer): Buffer {
  return element(Tag.context, content);
}

/** The first two numbers share a byte; the rest are in base 128, the high bit set on all bytes of a number but the last. */
function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  return element(Tag.oid, Buffer.from([40 * first + second, ...rest].flatMap(toBase128)));
}

function toBase128(value: number): number[] {
  const last = value % 128;
  return value < 128 ? [last] : [...toBase128((value - last) / 128).map((byte) => byte | 0x80), last];
}

function element(tag: number, ...contents: readonly Buffer[]): Buffer {
  const length = contents.reduce((sum, content) => sum + content.length, 0);
  return Buffer.concat([Buffer.of(tag), encodeLength(length), ...contents]);
}

function encodeLength(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length);
  const hex = length.toString(16);
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex');
  return Buffer.concat([Buffer.of(0x80 | bytes.length), bytes]);
}
