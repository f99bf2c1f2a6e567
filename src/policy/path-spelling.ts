// Two spellings of one path: as sent, and most decoded, the form in which the most willing origin may read it.
// If no rule distinguishes the two, whatever lies between them does not matter either.
// Paths are strings of bytes here (latin1), as they come off the wire.
import { isUtf8 } from 'node:buffer';

/**
 * Percent-decoding to its fixpoint, `\` as `/`, `;…` cut from each segment, slashes merged. Total, linear,
 * and idempotent. Escapes never overlap, so the order in which they are decoded does not matter.
 */
export function mostDecoded(path: string): string {
  if (!NEEDS_DECODING.test(path)) return path;
  return decodeEscapes(path)
    .replaceAll('\\', '/')
    .replace(/;[^/]*/g, '')
    .replace(/\/{2,}/g, '/');
}

/** Why this path cannot be judged by rules on paths, as a sentence; undefined if it can. */
export function pathAmbiguity(sent: string, decoded: string): string | undefined {
  if (sent.length > MAX_PATH_BYTES) return `the path has more than ${MAX_PATH_BYTES} bytes`;
  if (!sent.startsWith('/')) return 'the path does not begin with a slash';
  if (/%(?![0-9A-Fa-f]{2})/.test(sent)) return 'the path holds an invalid percent-escape';
  if (sent.includes('#')) return 'the path holds a fragment';
  if (DOT_SEGMENT.test(decoded)) return 'the path holds a dot segment';
  if (CONTROL.test(decoded)) return 'the path holds a control character';
  if (!isAscii(decoded) && !isUtf8Text(decoded)) return 'the path is not valid UTF-8';
  return undefined;
}

const MAX_PATH_BYTES = 8192;
const NEEDS_DECODING = /[%\\;]|\/\//;
const DOT_SEGMENT = /(?:^|\/)\.\.?(?:\/|$)/;
const CONTROL = /[\x00-\x1f\x7f]/;

/** A stack machine: what a decoded byte completes (`%25` + `32` + `65`) is decoded at once, so one pass is the fixpoint. */
function decodeEscapes(path: string): string {
  // Two bytes a place: text that is no string of bytes must stay recognisable as such.
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
