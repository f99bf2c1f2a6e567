// The form of a key: a prefix that tells its kind, 256 random bits, a checksum. It must not know where keys are kept.
import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

export type KeyKind = 'service' | 'personal';

export type MintedKey = {
  /** To be shown once and kept nowhere. */
  readonly text: string;
  readonly hash: Buffer;
  /** The beginning and the end, by which its owner knows it again. */
  readonly shortKey: string;
};

/** Secret scanners look for these. */
const PREFIXES: Readonly<Record<KeyKind, string>> = { service: 'sp_sk_', personal: 'sp_pt_' };
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BODY_LENGTH = 43; // 62^43 > 2^256
const CHECKSUM_LENGTH = 6; // 62^6 > 2^32
const FORM = /^sp_(sk|pt)_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

export function mintKey(kind: KeyKind): MintedKey {
  const body = PREFIXES[kind] + inBase62(BigInt(`0x${randomBytes(32).toString('hex')}`), BODY_LENGTH);
  const text = body + checksumOf(body);
  return { text, hash: hashKey(text), shortKey: shortenKey(text) };
}

/**
 * What is kept of a key, and what it is looked up by. A plain SHA-256: nobody guesses 256 random bits, so there is
 * nothing that a slow hash or a salt would protect, and it is asked for at every request.
 */
export function hashKey(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

/** Undefined for what was not minted by us: a typo or a truncated key is told without asking the database. */
export function parseKey(
  text: string,
): { readonly kind: KeyKind; readonly hash: Buffer; readonly shortKey: string } | undefined {
  const [, letters, , checksum] = FORM.exec(text) ?? [];
  if (letters === undefined || checksumOf(text.slice(0, -CHECKSUM_LENGTH)) !== checksum) return undefined;
  const kind = letters === 'sk' ? 'service' : 'personal';
  return { kind, hash: hashKey(text), shortKey: shortenKey(text) };
}

/** The end is of the checksum, so that no more than four random digits are shown. */
function shortenKey(text: string): string {
  const prefix = PREFIXES.service.length;
  return `${text.slice(0, prefix + 4)}...${text.slice(-4)}`;
}

function checksumOf(body: string): string {
  return inBase62(BigInt(crc32(body)), CHECKSUM_LENGTH);
}

function inBase62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = DIGITS[Number(rest % 62n)] + text;
  return text;
}
