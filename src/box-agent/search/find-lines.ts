// The lines of one text file that contain a literal text, from pieces of any size. A file with a NUL byte near its beginning is
// binary and passed over. A line longer than a megabyte is searched in parts.
import { MAX_TEXT_CHARS } from '../protocol/messages.ts';

export type FoundLine = { readonly line: number; readonly text: string };

const NEWLINE = 10;
const BINARY_CHECK_BYTES = 8 * 1024;
const MAX_CARRY_BYTES = 1024 * 1024;

export async function* findLines(
  pieces: AsyncIterable<Buffer>,
  wanted: Buffer,
): AsyncGenerator<FoundLine, void, undefined> {
  let line = 1;
  /** The beginning of a line whose end has not come. */
  let carried: Buffer[] = [];
  let carriedBytes = 0;
  let isFirst = true;
  for await (const piece of pieces) {
    if (isFirst && piece.subarray(0, BINARY_CHECK_BYTES).includes(0)) return;
    isFirst = false;
    const end = piece.lastIndexOf(NEWLINE) + 1;
    if (end === 0 && carriedBytes < MAX_CARRY_BYTES) {
      carried.push(piece);
      carriedBytes += piece.length;
      continue;
    }
    const whole = Buffer.concat([...carried, end === 0 ? piece : piece.subarray(0, end)]);
    yield* findInBlock(whole, wanted, line);
    line += countNewlines(whole);
    const rest = end === 0 ? Buffer.alloc(0) : piece.subarray(end);
    carried = rest.length === 0 ? [] : [rest];
    carriedBytes = rest.length;
  }
  if (carriedBytes > 0) yield* findInBlock(Buffer.concat(carried), wanted, line);
}

function* findInBlock(
  block: Buffer,
  wanted: Buffer,
  firstLine: number,
): Generator<FoundLine, void, undefined> {
  let line = firstLine;
  let counted = 0;
  for (let at = block.indexOf(wanted); at !== -1; at = block.indexOf(wanted, counted)) {
    const start = at === 0 ? 0 : block.lastIndexOf(NEWLINE, at - 1) + 1;
    const newline = block.indexOf(NEWLINE, at);
    const end = newline === -1 ? block.length : newline;
    line += countNewlines(block.subarray(counted, start));
    yield { line, text: textOf(block.subarray(start, end)) };
    if (newline === -1) return;
    counted = newline + 1;
    line += 1;
  }
}

/** A character takes at most 4 bytes; the rest of a long line is not decoded. */
function textOf(line: Buffer): string {
  const text = line.toString('utf8', 0, 4 * MAX_TEXT_CHARS).replace(/\r$/, '');
  return text.slice(0, MAX_TEXT_CHARS).toWellFormed();
}

function countNewlines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}
