// The spellings of one path: as sent, decoded, folded (normalized as some upstreams do), and both cut to the shortest form
// that an upstream may reduce them to. If the same rule applies to all, how far an upstream decodes does not matter.
// Paths are strings of bytes here (latin1), as received.
import { isUtf8 } from 'node:buffer';

/**
 * `decoded`: whole, percent-decoded until nothing is left to decode. `folded`: also under NFKC; the same text as `decoded`
 * if that changes nothing. `cut` and `foldedCut`: also without what some upstreams drop.
 */
export type PathReadings = {
  readonly decoded: string;
  readonly cut: string;
  readonly folded: string;
  readonly foldedCut: string;
};

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
  return readFolded(decoded);
}

function readFolded(decoded: string): PathReadings | string {
  const cut = cutPath(decoded);
  const folded = foldPath(decoded);
  if (folded === decoded) return { decoded, cut, folded, foldedCut: cut };
  if (folded === undefined) return 'the path contains escapes of lookalikes of escapes';
  if (DOT_SEGMENT.test(folded)) return 'the path contains a dot segment of lookalikes of dots or slashes';
  return { decoded, cut, folded, foldedCut: cutPath(folded) };
}

/** Percent-decodes until nothing is left to decode, reads `\` as `/`, merges slashes. Escapes never overlap, so their order does not matter. */
export function decodePath(path: string): string {
  if (!NEEDS_DECODING.test(path)) return path;
  return mergeSlashes(decodeEscapes(path).replaceAll('\\', '/'));
}

/**
 * A decoded path as an upstream reads it that normalizes names to NFKC or converts them to a code page of Windows: for
 * example U+FF0E and U+2024 are dots, U+FF0F and U+2044 are slashes, and U+FF05 begins an escape. Undefined if each round
 * reveals more.
 */
export function foldPath(decoded: string): string | undefined {
  if (isAscii(decoded)) return decoded;
  let path = decoded;
  for (let round = 0; round < MAX_FOLDS; round += 1) {
    // Before and after: NFKC changes some lookalikes, and reveals others.
    const text = asciiOf(asciiOf(Buffer.from(path, 'latin1').toString('utf8')).normalize('NFKC'));
    // What an escape of lookalikes decodes to need not be UTF-8: `８％90年` is an honest name. Such bytes are replaced then.
    const next = decodePath(Buffer.from(text).toString('latin1'));
    if (next === path) return path;
    path = next;
  }
  return undefined;
}

function asciiOf(text: string): string {
  return text.replace(LOOKALIKES, (char) => (char === ARABIC_PERCENT ? '%' : '/'));
}

/** Cuts a decoded path at the first `?` or `#`, as an upstream does that forwards it decoded, then `;…` from each segment. */
export function cutPath(decoded: string): string {
  if (!/[;?#]/.test(decoded)) return decoded;
  const path = decoded.replace(/[?#][^]*/, '');
  return mergeSlashes(path.replace(/;[^/]*/g, ''));
}

/**
 * What upstreams may read that merge slashes or decode escapes, but fewer than others do, each with `\` as `/` and without.
 * With a star inside a pattern, such a reading can match a rule that neither the path as sent nor the path decoded matches:
 * `/repos//a%2fb/keys` is `/repos/a%2fb/keys` where slashes are merged, and `/repos/a/b/keys` where all is decoded.
 */
export function partlyDecoded(sent: string): readonly string[] {
  const texts = new Set<string>();
  let text = sent;
  for (let depth = 0; depth <= MAX_DEPTH; depth += 1) {
    for (const slashed of [text, text.replaceAll('\\', '/')]) {
      const merged = mergeSlashes(slashed);
      texts.add(merged).add(cutPath(merged));
    }
    const next = decodeOnce(text);
    if (next === text) break;
    text = next;
  }
  return [...texts];
}

/** Each escape once; an invalid one stays as it is. */
function decodeOnce(path: string): string {
  const [first = '', ...parts] = path.split('%');
  const decoded = parts.map((part) =>
    HEX_PAIR.test(part)
      ? String.fromCharCode(Number.parseInt(part.slice(0, 2), 16)) + part.slice(2)
      : `%${part}`,
  );
  return first + decoded.join('');
}

/** Does a parameter contain a delimiter that does not end it in the path as sent? */
function hasBlurredParameter(sent: string): boolean {
  return BLURRED.test(decodeEscapes(sent.replaceAll('/', SENT_SLASH)));
}

export function mergeSlashes(path: string): string {
  return path.replace(/\/{2,}/g, '/');
}

const MAX_PATH_BYTES = 8192;
const NEEDS_DECODING = /[%\\]|\/\//;
// Also where a segment becomes one when `;…`, `?…` or `#…` is cut, each by itself or together.
// Spaces count for nothing: Windows drops them at the end of a name.
const DOT_SEGMENT = /(?:^|\/)\s*\.\s*(?:\.\s*)?(?:[/;?#]|$)/;
// Characters without a compatibility mapping that code pages of Windows convert to ASCII: to slashes the fraction slash,
// the division slash, the acute accent (1253), set minus, and the signs of yen and won, which have the code of the backslash
// in Japan and Korea; to a percent sign the Arabic one.
const LOOKALIKES = /[\u2044\u2215\u00b4\u2216\u00a5\u20a9\u066a]/g;
const ARABIC_PERCENT = '\u066a';
// An honest path needs two. Each more takes at least twice the bytes in the path.
const MAX_FOLDS = 4;
// Servers, frameworks and applications decode once each.
const MAX_DEPTH = 3;
const HEX_PAIR = /^[0-9A-Fa-f]{2}/;
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

export function isUtf8Text(text: string): boolean {
  return /^[\x00-\xff]*$/.test(text) && isUtf8(Buffer.from(text, 'latin1'));
}
