// The text of a JSON string as UTF-8, from its bytes and piece by piece: as one string of JavaScript, a long text would have up to twice
// its bytes, in the heap of a worker that is smaller than that. Pure.

const PIECE_BYTES = 1024 * 1024;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;

/** `json` begins and ends with its quotes. Halves of surrogate pairs become U+FFFD. */
export function decodeJsonString(json: Uint8Array, pieceBytes = PIECE_BYTES): Buffer {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength);
  const end = bytes.lastIndexOf('"');
  const pieces: Buffer[] = [];
  for (let from = 1; from < end; ) {
    const to = cutAfter(bytes, { from, atLeast: pieceBytes, end });
    const text = JSON.parse(`"${bytes.toString('utf8', from, to)}"`) as string;
    pieces.push(Buffer.from(text.toWellFormed()));
    from = to;
  }
  return Buffer.concat(pieces);
}

type Cut = { readonly from: number; readonly atLeast: number; readonly end: number };

/** Neither in an escape, nor in a pair of them, nor in a character. */
function cutAfter(bytes: Buffer, { from, atLeast, end }: Cut): number {
  const wanted = Math.min(from + atLeast, end);
  let at = from;
  while (at < wanted) at += bytes[at] === BACKSLASH ? lengthOfEscape(bytes, at) : 1;
  while (at < end && isContinuation(bytes[at])) at += 1;
  return at;
}

function lengthOfEscape(bytes: Buffer, at: number): number {
  if (bytes[at + 1] !== LETTER_U) return 2;
  const isPair =
    isSurrogate(bytes, at, 0x8) &&
    bytes[at + 6] === BACKSLASH &&
    bytes[at + 7] === LETTER_U &&
    isSurrogate(bytes, at + 6, 0xc);
  return isPair ? 12 : 6;
}

/** `\uD8..` to `\uDB..` begin with 8 as their second digit, `\uDC..` to `\uDF..` with c. */
function isSurrogate(bytes: Buffer, at: number, first: number): boolean {
  const digit = toDigit(bytes[at + 3] ?? 0);
  return toDigit(bytes[at + 2] ?? 0) === 0xd && digit >= first && digit < first + 4;
}

function toDigit(byte: number): number {
  return byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57;
}

function isContinuation(byte: number | undefined): boolean {
  return ((byte ?? 0) & 0xc0) === 0x80;
}
