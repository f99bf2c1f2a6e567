// Builds X.509 v3 certificates (RFC 5280): node-forge encodes the ASN.1, node:crypto signs. The only adapter of
// node-forge, whose verification code has a history of accepted forgeries, so it never verifies a certificate.
import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto';
import asn1 from 'node-forge/lib/asn1.js';

/** The host that a leaf is for. `host` is canonical: lower case, no trailing dot, no brackets. */
export type LeafSubject = { readonly host: string; readonly kind: 'name' | 'ipv4' | 'ipv6' };

export type Validity = { readonly notBefore: Date; readonly notAfter: Date };

/** The CA that signs. `name` is its Distinguished Name exactly as in its own certificate. */
export type Issuer = { readonly name: Asn1; readonly keyId: string; readonly key: KeyObject };

/** A public key ready to be certified, and its key identifier in certificates. */
export type CertifiedKey = { readonly info: Asn1; readonly keyId: string };

/** The fields of a certificate before its extensions. */
type Body = { readonly subject: Asn1; readonly publicKey: CertifiedKey; readonly validity: Validity };

/** forge's tree. Bytes are "binary strings": one UTF-16 unit for each byte. */
type Asn1 = ReturnType<typeof asn1.create>;

const { Class, Type } = asn1;

const Oid = {
  commonName: '2.5.4.3',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  rsaWithSha256: '1.2.840.113549.1.1.11',
} as const;

// RFC 5280 appendix A.1, ub-common-name.
const MAX_COMMON_NAME = 64;

/** RFC 7093 §2 method 4: the identifier is a hash of the whole SubjectPublicKeyInfo, here truncated to 160 bits. */
export function certifiedKey(publicKey: KeyObject): CertifiedKey {
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return { info: fromDer(spki), keyId: binary(createHash('sha256').update(spki).digest().subarray(0, 20)) };
}

/** A self-signed certificate in DER that may sign leaves and nothing below them (pathlen 0). */
export function signRoot(commonName: string, key: KeyObject, validity: Validity): Buffer {
  const subject = distinguishedName(commonName);
  const publicKey = certifiedKey(createPublicKey(key));
  return signCertificate({ name: subject, keyId: publicKey.keyId, key }, { subject, publicKey, validity }, [
    extension(Oid.basicConstraints, sequence(boolean(), primitive(Type.INTEGER, '\0')), true),
    extension(Oid.keyUsage, bits('\x01\x06'), true), // keyCertSign, cRLSign
    extension(Oid.subjectKeyIdentifier, octets(publicKey.keyId)),
  ]);
}

/** The issuer for an existing CA certificate (X.509 v3, DER) and its private key. */
export function issuerOf(certificateDer: Buffer, key: KeyObject): Issuer {
  // version, serial, signature, issuer, validity, subject, key, then optional fields
  const fields = children(children(fromDer(certificateDer))[0]);
  const name = fields[5];
  if (name === undefined) throw new Error('not an X.509 v3 certificate');
  return { name, keyId: subjectKeyIdIn(fields) ?? certifiedKey(createPublicKey(key)).keyId, key };
}

/** A TLS server's certificate in DER, for one name or address. */
export function signLeaf(
  issuer: Issuer,
  subject: LeafSubject,
  publicKey: CertifiedKey,
  validity: Validity,
): Buffer {
  // A longer host is not truncated, because the result would be another name. With an empty subject the alternative name
  // must be critical (RFC 5280 §4.2.1.6).
  const isNamed = subject.host.length <= MAX_COMMON_NAME;
  const name = isNamed ? distinguishedName(subject.host) : sequence();
  return signCertificate(issuer, { subject: name, publicKey, validity }, [
    extension(Oid.basicConstraints, sequence(), true),
    extension(Oid.keyUsage, bits('\x07\x80'), true), // digitalSignature
    extension(Oid.extKeyUsage, sequence(oid(Oid.serverAuth))),
    extension(Oid.subjectKeyIdentifier, octets(publicKey.keyId)),
    extension(Oid.authorityKeyIdentifier, sequence(tagged(0, issuer.keyId))),
    extension(Oid.subjectAltName, sequence(alternativeName(subject)), !isNamed),
  ]);
}

function signCertificate(issuer: Issuer, body: Body, extensions: readonly Asn1[]): Buffer {
  const algorithm = signatureAlgorithm(issuer.key);
  const tbs = sequence(
    explicit(0, primitive(Type.INTEGER, '\x02')), // v3
    primitive(Type.INTEGER, serialNumber()),
    algorithm,
    issuer.name,
    sequence(time(body.validity.notBefore), time(body.validity.notAfter)),
    body.subject,
    body.publicKey.info,
    explicit(3, sequence(...extensions)),
  );
  const signature = sign('sha256', toDer(tbs), issuer.key);
  return toDer(sequence(tbs, algorithm, bits(`\0${binary(signature)}`)));
}

/** 16 random bytes, positive and without a leading zero: otherwise strict clients reject one certificate in 256. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  const first = bytes.readUInt8(0) & 0x7f;
  bytes[0] = first === 0 ? 1 : first;
  return binary(bytes);
}

/** RFC 5758 §3.2: ECDSA has no parameters. RFC 4055 §5: RSA has NULL. */
function signatureAlgorithm(key: KeyObject): Asn1 {
  return key.asymmetricKeyType === 'ec'
    ? sequence(oid(Oid.ecdsaWithSha256))
    : sequence(oid(Oid.rsaWithSha256), primitive(Type.NULL, ''));
}

/** RFC 5280 §4.1.2.5: two digits of year until 2049, four from 2050. */
function time(date: Date): Asn1 {
  const digits = date.toISOString().replace(/[-:T]|\.\d+/g, '');
  return date.getUTCFullYear() < 2050
    ? primitive(Type.UTCTIME, digits.slice(2))
    : primitive(Type.GENERALIZEDTIME, digits);
}

function alternativeName({ host, kind }: LeafSubject): Asn1 {
  if (kind === 'name') return tagged(2, host);
  return tagged(7, binary(kind === 'ipv4' ? Buffer.from(host.split('.').map(Number)) : ipv6Bytes(host)));
}

/** URL writes every IPv6 address as hex groups with at most one `::`, an embedded IPv4 tail too. */
function ipv6Bytes(host: string): Buffer {
  const [head, tail] = new URL(`http://[${host}]`).hostname
    .slice(1, -1)
    .split('::')
    .map((half) => half.split(':').filter((group) => group !== ''));
  const groups = [...(head ?? []), ...(tail ?? [])];
  groups.splice(head?.length ?? 0, 0, ...Array<string>(8 - groups.length).fill('0'));
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** RFC 5280 §4.2.1.1: a leaf names its issuer's key as the issuer's own certificate does. */
function subjectKeyIdIn(fields: readonly Asn1[]): string | undefined {
  const extensions = fields.find((field) => field.tagClass === Class.CONTEXT_SPECIFIC && field.type === 3);
  const wanted = asn1.oidToDer(Oid.subjectKeyIdentifier).getBytes();
  const found = children(children(extensions)[0]).find((entry) => children(entry)[0]?.value === wanted);
  const content = children(found).at(-1)?.value;
  return typeof content === 'string' ? String(asn1.fromDer(content).value) : undefined;
}

function distinguishedName(commonName: string): Asn1 {
  const attribute = sequence(oid(Oid.commonName), primitive(Type.UTF8, binary(Buffer.from(commonName))));
  return sequence(asn1.create(Class.UNIVERSAL, Type.SET, true, [attribute]));
}

function extension(id: string, value: Asn1, isCritical = false): Asn1 {
  return sequence(oid(id), ...(isCritical ? [boolean()] : []), octets(binary(toDer(value))));
}

function children(node: Asn1 | undefined): Asn1[] {
  return Array.isArray(node?.value) ? node.value : [];
}

function sequence(...items: Asn1[]): Asn1 {
  return asn1.create(Class.UNIVERSAL, Type.SEQUENCE, true, items);
}

function primitive(type: asn1.Type, bytes: string): Asn1 {
  return asn1.create(Class.UNIVERSAL, type, false, bytes);
}

/** TRUE; DER omits a FALSE wherever it is the default. */
function boolean(): Asn1 {
  return primitive(Type.BOOLEAN, '\xff');
}

function octets(bytes: string): Asn1 {
  return primitive(Type.OCTETSTRING, bytes);
}

/** `bytes` begins with the count of unused bits. */
function bits(bytes: string): Asn1 {
  return primitive(Type.BITSTRING, bytes);
}

function oid(id: string): Asn1 {
  return primitive(Type.OID, asn1.oidToDer(id).getBytes());
}

/** An implicitly tagged primitive, [n]. */
function tagged(tag: number, bytes: string): Asn1 {
  return asn1.create(Class.CONTEXT_SPECIFIC, tag, false, bytes);
}

/** An explicitly tagged value, [n] { … }. */
function explicit(tag: number, value: Asn1): Asn1 {
  return asn1.create(Class.CONTEXT_SPECIFIC, tag, true, [value]);
}

function fromDer(der: Buffer): Asn1 {
  return asn1.fromDer(binary(der));
}

function toDer(node: Asn1): Buffer {
  return Buffer.from(asn1.toDer(node).getBytes(), 'latin1');
}

function binary(bytes: Buffer): string {
  return bytes.toString('latin1');
}
