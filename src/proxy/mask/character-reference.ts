// Character references of HTML for ASCII characters, as encoders write them: `&#43;`, `&#x2B;`, `&#X002b;`, `&lt;`.
// Values that are injected contain no other characters.
import { SEMICOLON, hexValue } from '../../http1/byte-class.ts';

export const NO_REFERENCE = -1;
/** The text ends before the reference does. */
export const INCOMPLETE = -2;

const AMPERSAND = 0x26;
const HASH = 0x23;
const LETTER_X = 0x78;
const LAST_ASCII = 0x7f;
/** Encoders write few leading zeros, and an incomplete reference must be bounded. */
const MAX_DIGITS = 27;
const MAX_LETTERS = 4;
const LETTERS: readonly (readonly [name: string, byte: number])[] = [
  ['amp', 0x26],
  ['lt', 0x3c],
  ['gt', 0x3e],
  ['quot', 0x22],
  ['apos', 0x27],
];
/** By the letters as one number. */
const NAMED: ReadonlyMap<number, number> = new Map(
  LETTERS.map(([name, byte]) => [[...name].reduce((sum, char) => (sum << 8) | char.charCodeAt(0), 0), byte]),
);

/** The reference at an ampersand: its length, shifted by eight bits, and the byte that it stands for. Or one of the above. */
export function referenceAt(bytes: Buffer, at: number): number {
  if (at + 1 >= bytes.length) return INCOMPLETE;
  if (bytes[at + 1] !== HASH) return namedAt(bytes, at);
  const isHex = ((bytes[at + 2] ?? 0) | 0x20) === LETTER_X;
  return isHex ? numberAt(bytes, at, at + 3, 16) : numberAt(bytes, at, at + 2, 10);
}

/** The offset of the next reference, complete or not, or the end. */
export function nextReference(bytes: Buffer, from: number): number {
  let at = bytes.indexOf(AMPERSAND, from);
  while (at >= 0 && referenceAt(bytes, at) === NO_REFERENCE) at = bytes.indexOf(AMPERSAND, at + 1);
  return at < 0 ? bytes.length : at;
}

function numberAt(bytes: Buffer, start: number, from: number, base: 10 | 16): number {
  let value = 0;
  let at = from;
  for (; at < bytes.length; at += 1) {
    const digit = hexValue(bytes[at] as number); // `at` is inside
    if (digit < 0 || digit >= base) break;
    value = value * base + digit;
    if (value > LAST_ASCII || at - from >= MAX_DIGITS) return NO_REFERENCE;
  }
  if (at >= bytes.length) return INCOMPLETE;
  return at > from && bytes[at] === SEMICOLON ? ((at + 1 - start) << 8) | value : NO_REFERENCE;
}

function namedAt(bytes: Buffer, start: number): number {
  let name = 0;
  for (let at = start + 1; at < bytes.length; at += 1) {
    const byte = bytes[at] as number; // `at` is inside
    if (byte === SEMICOLON) {
      const named = NAMED.get(name);
      return named === undefined ? NO_REFERENCE : ((at + 1 - start) << 8) | named;
    }
    if (byte < 0x61 || byte > 0x7a || at - start > MAX_LETTERS) return NO_REFERENCE;
    name = (name << 8) | byte;
  }
  return INCOMPLETE;
}
