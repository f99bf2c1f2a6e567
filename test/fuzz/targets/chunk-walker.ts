// Fuzz target: a chunked body comes out alike however it is cut, canonical, and with the data that a second, simple decoder
// finds in what came. Input: how the bytes are split (of a response, if that is odd), then the bytes.
import assert from 'node:assert/strict';
import { ChunkWalker } from '../../../src/http1/chunk-walker.ts';
import { split } from '../split.ts';

type Walked = {
  readonly out: Buffer;
  readonly consumed: number;
  readonly error: string | undefined;
  readonly done: boolean;
};
type Kind = 'request' | 'response';

export function fuzz(data: Buffer): void {
  const { whole, pieces } = split(data);
  const kind: Kind = (data[0] ?? 0) % 2 === 1 ? 'response' : 'request';
  const walked = walk(kind, [whole]);
  const inPieces = walk(kind, pieces);
  assert.deepEqual({ ...inPieces, out: undefined }, { ...walked, out: undefined });
  // A size in capitals passes as it came where it came in one piece.
  const [inOne, inMany] = [walked, inPieces].map(({ out }) => out.toString('latin1').toLowerCase());
  if (walked.error === undefined) assert.equal(inMany, inOne, 'the split shows in what goes out');
  const canonical = /^(?:[1-9a-fA-F][0-9a-fA-F]*\r\n|0\r\n\r\n$)/;
  const decoded = decode(whole.subarray(0, walked.consumed), kind);
  if (!walked.done) return assert(decoded === undefined, 'a second decoder finds the end');
  assert(decoded !== undefined, 'a second decoder finds no end');
  const again = decode(walked.out, 'request');
  assert(again?.equals(decoded), 'other data goes out than came');
  assert.match(walked.out.toString('latin1', 0, 20), canonical);
  assert.deepEqual(walk('request', [walked.out]).out, walked.out, 'what goes out is not canonical');
}

function walk(kind: Kind, pieces: readonly Buffer[]): Walked {
  const walker = new ChunkWalker(kind);
  const out: Buffer[] = [];
  let consumed = 0;
  for (const piece of pieces) {
    if (walker.done || walker.error !== undefined) break;
    consumed += walker.walk(piece, 0, (bytes) => out.push(Buffer.from(bytes)));
  }
  return { out: Buffer.concat(out), consumed, error: walker.error?.code, done: walker.done };
}

/** The data of a whole body that ends with the bytes; undefined where it does not. */
function decode(bytes: Buffer, kind: Kind): Buffer | undefined {
  const text = bytes.toString('latin1');
  const head =
    kind === 'request'
      ? /(0|[1-9a-fA-F][0-9a-fA-F]*)\r\n/y
      : /([0-9a-fA-F]{1,16})(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t\x20!\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?)*\r\n/y;
  const data: string[] = [];
  for (let at = 0; ; ) {
    head.lastIndex = at;
    const found = head.exec(text);
    if (found === null) return undefined;
    const size = Number.parseInt(found[1] ?? '', 16);
    at = head.lastIndex;
    if (size === 0) return areTrailers(text.slice(at)) ? Buffer.from(data.join(''), 'latin1') : undefined;
    data.push(text.slice(at, at + size));
    if (text.slice(at + size, at + size + 2) !== '\r\n') return undefined;
    at += size + 2;
  }
}

function areTrailers(text: string): boolean {
  const lines = text.split('\r\n');
  if (lines.length < 2 || lines.at(-1) !== '' || lines.at(-2) !== '') return false;
  return lines
    .slice(0, -2)
    .every(
      (line) =>
        /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/.test(line) &&
        !/^(?:content[-_]length|transfer[-_]encoding):/i.test(line),
    );
}
