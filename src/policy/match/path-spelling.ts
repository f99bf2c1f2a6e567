// The spellings of one path: as sent, decoded, and cut, which is the shortest form that an upstream may reduce it to.
// If the same rule applies to all three, how far an upstream decodes does not matter.
// Paths are strings of bytes here (latin1), as received.
import { isUtf8 } from 'node:buffer';

/** `decoded`: whole, percent-decoded until nothing is left to decode. `cut`: also without what some upstreams drop. */
export type PathReadings = { readonly decoded: string; readonly cut: string };

/** How upstreams may read the path; a string says why path rules cannot be applied to it. */
export function readPath(sent: string): PathReadings | string {
  if (sent.length > MAX_PATH_BYTES) return `the path has more than ${MAX_PATH_BYTES} bytes`;
  if (!sent.startsWith('/')) return 'the path does not begin with a slash';
  if (/%(?![0-9A-Fa-f]{2})/.test(sent)) return 'the path contains an invalid percent-escape';
  if (sent.includes('#')) return 'the path contains a fragment';
  // Checked over the whole text: what one upstream cuts off, another splits, truncates or logs.
  const decoded = decodePath(sent);
  if (CONTROL.test(decoded)) return 'the path contains a control character';
  if (!isAscii(decoded) && !isUtf8Text(decoded)) return 'the path is not valid UTF-8';
  if (DOT_SEGMENT.test(decoded)) return 'the path contains a dot segment';
  if (decoded.includes(';') && hasBlurredParameter(sent))
    return 'a path parameter contains an encoded delimiter';
  return { decoded, cut: cutPath(decoded) };
}

/** Percent-decodes until nothing is left to decode, reads `\` as `/`, merges slashes. Escapes never overlap, so their order does not matter. */
export function decodePath(path: string): string {
  if (!NEEDS_DECODING.test(path)) return path;
  return mergeSlashes(decodeEscapes(path).replaceAll('\\', '/'));
}

/** Cuts a decoded path at the first `?` or `#`, as an upstream does that forwards it decoded, then `;…` from each segment. */
export function cutPath(decoded: string): string {
  if (!/[;?#]/.test(decoded)) return decoded;
  const path = decoded.replace(/[?#][^]*/, '');
  return mergeSlashes(path.replace(/;[^/]*/g, ''));
}

/** Does a parameter contain a delimiter that does not end it in the path as sent? */
function hasBlurredParameter(sent: string): boolean {
  return BLURRED.test(decodeEscapes(sent.replaceAll('/', SENT_SLASH)));
}

function mergeSlashes(path: string): string {
  return path.replace(/\/{2,}/g, '/');
}

const MAX_PATH_BYTES = 8192;
const NEEDS_DECODING = /[%\\]|\/\//;
// Also where a segment becomes one when `;…`, `?…` or `#…` is cut, each by itself or together.
const DOT_SEGMENT = /(?:^|\/)\.\.?(?:[/;?#]|$)/;
// Where such a parameter ends depends on how far an upstream decodes before it cuts: `/a;%2fb` is `/a` or `/a/b`.
const BLURRED = /(?:^|\u0100)[^\u0100;]*;[^\u0100]*[/\\?#]/;
/** Marks a slash of the path as sent; it is not a byte, so no decoded character equals it. */
const SENT_SLASH = '\u0100';
const CONTROL = /[\x00-\x1f\x7f]/;

/** Decodes with a stack: an escape that a decoded byte completes (`%25` + `32` + `65`) is decoded at once, so one pass suffices. */
function decodeEscapes(path: string): string {
  // Two bytes a character: text with characters beyond a byte must stay recognisable as such.
  const out = new Uint16Array(path.length);
  let top = 0;
  for (let i = 0; i < path.length; i += 1) {
    out[top] = path.charCodeAt(i);
    top += 1;
    while (top >= 3 && out[top - 3] === PERCENT) {
      const high = hexValue(out[top - 2] ?? 0);
      const low = hexValue(out[top - 1] ?? 0);
      if (high < 0 || low < 0) break;
      top -= 2;
      out[top - 1] = high * 16 + low;
    }
  }
  return Buffer.from(out.buffer, 0, top * 2).toString('utf16le');
}

const PERCENT = 0x25;

function hexValue(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function isAscii(text: string): boolean {
  return /^[\x00-\x7f]*$/.test(text);
}

function isUtf8Text(text: string): boolean {
  return /^[\x00-\xff]*$/.test(text) && isUtf8(Buffer.from(text, 'latin1'));
}
