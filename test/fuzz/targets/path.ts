// Fuzz target: the readings of a path and the matching of one pattern are those of a second, simple implementation.
// Input: a path, and behind a line break a pattern.
import assert from 'node:assert/strict';
import { globMatches, parsePathPattern } from '../../../src/policy/match/path-pattern.ts';
import { type PathReadings, decodePath, readPath } from '../../../src/policy/match/path-spelling.ts';
import { decode, matches, readings } from '../simple-path.ts';

export function fuzz(data: Buffer): void {
  const text = data.toString('latin1');
  const lineEnd = text.indexOf('\n');
  const path = lineEnd < 0 ? text : text.slice(0, lineEnd);
  const read = readPath(path);
  assert.deepEqual(typeof read === 'string' ? undefined : read, readings(path));
  assert.equal(decodePath(path), decode(path));
  assert.equal(decodePath(decodePath(path)), decodePath(path), 'decoding does not end at its fixpoint');
  if (lineEnd >= 0 && typeof read !== 'string') assertMatching(text.slice(lineEnd + 1), path, read);
}

function assertMatching(written: string, path: string, { decoded, folded }: PathReadings): void {
  const pattern = parsePathPattern(written);
  if (typeof pattern === 'string') return;
  assert.equal(globMatches(pattern.asWritten, path), matches(written, path, 'as written'), 'as written');
  assert.equal(globMatches(pattern.decoded, decoded), matches(written, decoded, 'decoded'), 'decoded');
  assert.equal(globMatches(pattern.folded, folded), matches(written, folded, 'folded'), 'folded');
}
