// Fuzz target: a filter of runs has a meaning, or issues within the text; the same pieces with other blanks between them mean the
// same. Input: the text in UTF-8.
import assert from 'node:assert/strict';
import { parseFilter } from '../../../src/platform/traces/filter/parser.ts';

const PIECE = /"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|[\w.+-]+|[(),[\]]/g;

export function fuzz(data: Buffer): void {
  const text = data.toString('utf8');
  const parsed = parseFilter(text);
  if (!parsed.ok) {
    assert(parsed.issues.length > 0, 'neither a meaning nor an issue');
    for (const { at } of parsed.issues) assert(Number.isInteger(at) && at >= 0 && at <= text.length);
    return;
  }
  assert.deepEqual(parseFilter(text), parsed);
  const pieces = text.match(PIECE) ?? [];
  assert.equal(pieces.join(''), withoutBlanks(text), 'something between the pieces is ignored');
  for (const blank of ['', ' ', '\r\n\t'])
    assert.deepEqual(parseFilter(pieces.join(blank)), parsed, 'blanks have a meaning');
}

function withoutBlanks(text: string): string {
  return text.replaceAll(
    /("(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*')|[ \t\r\n]/g,
    (_, quoted?: string) => quoted ?? '',
  );
}
