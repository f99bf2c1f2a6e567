// Trailers over every split: validated to their blank line, with no framing field among them.
import { describe, expect, it } from 'vitest';
import { TrailerWalker } from '../../src/http1/trailer-walker.ts';

/** How many bytes are consumed, and the result; the same for one piece and for single bytes. */
function walk(text: string): readonly [consumed: number, result: string] {
  const run = (pieces: readonly Buffer[]): readonly [number, string] => {
    const walker = new TrailerWalker();
    let consumed = 0;
    for (const piece of pieces) consumed += walker.walk(piece, 0);
    return [consumed, walker.error?.code ?? (walker.done ? 'done' : 'more')];
  };
  const bytes = Buffer.from(text, 'latin1');
  const whole = run([bytes]);
  expect(run([...bytes].map((byte) => Buffer.from([byte])))).toEqual(whole);
  return whole;
}

describe('trailers', () => {
  it.each(['\r\n', 'A: b\r\n\r\n', 'X-Content-Length: 1\r\nContent-Lengths: 2\r\nA:\r\n\r\n'])(
    '%j end with their blank line',
    (text) => expect(walk(`${text}next`)).toEqual([text.length, 'done']),
  );

  it.each([
    ['A: b\n\r\n', 'trailer_malformed'],
    ['A : b\r\n\r\n', 'trailer_malformed'],
    [' A: b\r\n\r\n', 'trailer_malformed'],
    ['A: b\r\nB\r\n\r\n', 'trailer_malformed'],
    ['A: \0\r\n\r\n', 'trailer_malformed'],
    ['\rx', 'trailer_malformed'],
    ['CONTENT_length: 1\r\n\r\n', 'trailer_has_framing'],
    ['A: b\r\nTransfer-Encoding: chunked\r\n\r\n', 'trailer_has_framing'],
    [`A: ${'b'.repeat(8200)}`, 'trailer_too_large'],
    ['A: b\r\n', 'more'],
  ])('%j: %s', (text, result) => expect(walk(text)[1]).toBe(result));
});
