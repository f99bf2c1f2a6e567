// The format of an API key: a prefix that names its kind, 256 random bits and a checksum.
import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

export type KeyKind = 'service' | 'personal';

export type MintedKey = {
  /** Shown once and never stored. */
  readonly text: string;
  readonly hash: Buffer;
  /** The first and the last characters, by which an owner recognizes the key. */
  readonly shortKey: string;
};

/** Secret scanners search for these prefixes. */
const PREFIXES: Readonly<Record<KeyKind, string>> = { service: 'sp_sk_', personal: 'sp_pt_' };
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BODY_LENGTH = 43; // 62^43 > 2^256
const CHECKSUM_LENGTH = 6; // 62^6 > 2^32
const FORMAT = /^sp_(sk|pt)_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

export function mintKey(kind: KeyKind): MintedKey {
  const body = PREFIXES[kind] + toBase62(BigInt(`0x${randomBytes(32).toString('hex')}`), BODY_LENGTH);
  const text = body + checksumOf(body);
  return { text, hash: hashKey(text), shortKey: shortenKey(text) };
}

/**
 * The stored form of a key, and the form it is looked up by. SHA-256 without a salt is enough: 256 random bits cannot be
 * guessed, so a slow hash or a salt would protect nothing, and every request computes this hash.
 */
export function hashKey(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

/** Undefined for a text that mintKey cannot have made: typos and truncated keys are rejected without a query. */
export function parseKey(text: string): (Omit<MintedKey, 'text'> & { readonly kind: KeyKind }) | undefined {
  const [, letters, , checksum] = FORMAT.exec(text) ?? [];
  if (letters === undefined || checksumOf(text.slice(0, -CHECKSUM_LENGTH)) !== checksum) return undefined;
  const kind = letters === 'sk' ? 'service' : 'personal';
  return { kind, hash: hashKey(text), shortKey: shortenKey(text) };
}

/** The last characters belong to the checksum, so at most four random characters are shown. */
function shortenKey(text: string): string {
  const prefix = PREFIXES.service.length;
  return `${text.slice(0, prefix + 4)}...${text.slice(-4)}`;
}

function checksumOf(body: string): string {
  return toBase62(BigInt(crc32(body)), CHECKSUM_LENGTH);
}

function toBase62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = DIGITS[Number(rest % 62n)] + text;
  return text;
}
