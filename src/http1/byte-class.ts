// Byte classes of HTTP/1.1 as tables: one load and one mask decide where a byte is allowed.

/** RFC 9110 §5.6.2 tchar: method, field name, list token. */
export const TOKEN = 1;
/** `_` alone: legal in a name, but CGI-like upstreams read it as `-`. */
export const UNDERSCORE = 2;
/** SP, HTAB, visible ASCII, obs-text (RFC 9110 §5.5; clients send UTF-8): field value, reason phrase. */
export const FIELD_VALUE = 4;
/** Visible ASCII without `#`, `"`, `<`, `>`: request target. */
export const TARGET = 8;

export const HTAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SP = 0x20;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const SEMICOLON = 0x3b;

const NOT_IN_TOKEN = '"(),/:;<=>?@[\\]{}';
const NOT_IN_TARGET = '#"<>';

const classes: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => toClass(byte));
const folded: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte,
);
const hexValues: Int8Array = Int8Array.from({ length: 256 }, (_, byte) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(folded[byte] ?? 0)),
);

// The casts below are safe: the callers keep `at` inside the buffer, and every table has 256 entries.

/** The byte at `at`, which the caller has checked to be inside. */
export function byteAt(bytes: Buffer, at: number): number {
  return bytes[at] as number;
}

/** The class bits of the byte at `at`, which the caller has checked to be inside. */
export function classAt(bytes: Buffer, at: number): number {
  return classes[bytes[at] as number] as number;
}

/** The class bits of a byte. */
export function classOf(byte: number): number {
  return classes[byte] as number;
}

/** The byte at `at` with A-Z folded to a-z; other bytes, `_` among them, stay. */
export function lowerAt(bytes: Buffer, at: number): number {
  return folded[bytes[at] as number] as number;
}

/** 0 to 15, or -1 where the byte is no hexadecimal digit. */
export function hexValue(byte: number): number {
  return hexValues[byte] as number;
}

/** The number that 1 to `maxDigits` decimal digits in `bytes[start, end)` spell; undefined for anything else. */
export function decimalAt(bytes: Buffer, start: number, end: number, maxDigits: number): number | undefined {
  if (end <= start || end - start > maxDigits) return undefined;
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = byteAt(bytes, at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return value;
}

/** True for SP and HTAB (RFC 9110 §5.6.3). */
export function isOws(byte: number): boolean {
  return byte === SP || byte === HTAB;
}

function toClass(byte: number): number {
  const visible = byte > 0x20 && byte < 0x7f;
  const text = String.fromCharCode(byte);
  return (
    (visible && !NOT_IN_TOKEN.includes(text) ? TOKEN : 0) |
    (text === '_' ? UNDERSCORE : 0) |
    (visible || byte === SP || byte === HTAB || byte >= 0x80 ? FIELD_VALUE : 0) |
    (visible && !NOT_IN_TARGET.includes(text) ? TARGET : 0)
  );
}
