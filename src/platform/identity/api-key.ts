// The format of every key and token: a prefix that names its kind, 256 random bits and a checksum.
import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** The keys of callers. */
export type KeyKind = 'service' | 'personal';
export type TokenKind = KeyKind | 'sandbox' | 'box_service' | 'trace';

export type MintedKey = {
  /** Shown once and never stored. */
  readonly text: string;
  readonly hash: Buffer;
  /** The first and the last characters, by which an owner recognizes the key. */
  readonly shortKey: string;
};

/** Secret scanners search for these prefixes. */
const PREFIXES: Readonly<Record<TokenKind, string>> = {
  service: 'sp_sk_',
  personal: 'sp_pt_',
  sandbox: 'sp_sb_',
  box_service: 'sp_sv_',
  trace: 'sp_tr_',
};
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BODY_LENGTH = 43; // 62^43 > 2^256
const CHECKSUM_LENGTH = 6; // 62^6 > 2^32
const FORMAT = /^sp_(?:sk|pt|sb|sv|tr)_[0-9A-Za-z]{43}([0-9A-Za-z]{6})$/;

export function mintKey(kind: TokenKind): MintedKey {
  const body = PREFIXES[kind] + toBase62(BigInt(`0x${randomBytes(32).toString('hex')}`), BODY_LENGTH);
  const text = body + checksumOf(body);
  return { text, hash: hashKey(text), shortKey: shortenKey(text) };
}

/**
 * The stored form of a key, and the form it is looked up by. SHA-256 without a salt is enough: 256 random bits cannot be
 * guessed, so a slow hash or a salt would protect nothing, and every request computes this hash.
 */
export function hashKey(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** False for a text that mintKey cannot have made: typos and truncated keys are rejected without a query. */
export function hasKeyFormat(text: string, kind: TokenKind): boolean {
  const checksum = text.startsWith(PREFIXES[kind]) ? FORMAT.exec(text)?.[1] : undefined;
  return checksum !== undefined && checksumOf(text.slice(0, -CHECKSUM_LENGTH)) === checksum;
}

/** Undefined for a text that is no key of a caller. */
export function parseKey(text: string): (Omit<MintedKey, 'text'> & { readonly kind: KeyKind }) | undefined {
  const kind = (['service', 'personal'] as const).find((one) => hasKeyFormat(text, one));
  return kind && { kind, hash: hashKey(text), shortKey: shortenKey(text) };
}

const IN_TEXT = /(?:^|[^0-9A-Za-z])sp_[a-z]{2}_[0-9A-Za-z_-]{43}/;
const CREDENTIALS = /^(?:bearer|basic)\s+(?<text>\S+)\s*$/i;

/** Whether the value of a field contains a key or a token, also as a password in base64: whoever gets it could use it. */
export function containsKey(value: string): boolean {
  const text = CREDENTIALS.exec(value)?.groups?.['text'] ?? '';
  return IN_TEXT.test(value) || IN_TEXT.test(Buffer.from(text, 'base64').toString('latin1'));
}

/** The last characters belong to the checksum, so at most four random characters are shown. */
function shortenKey(text: string): string {
  const prefix = PREFIXES.service.length;
  return `${text.slice(0, prefix + 4)}...${text.slice(-4)}`;
}

function checksumOf(body: string): string {
  // By numbers and not by toBase62: every request with a key is checked.
  let text = '';
  for (let rest = crc32(body); text.length < CHECKSUM_LENGTH; rest = Math.floor(rest / 62))
    text = DIGITS[rest % 62] + text;
  return text;
}

function toBase62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = DIGITS[Number(rest % 62n)] + text;
  return text;
}
