// The walker over any split of the stream, and what it promises of the pieces it emits. Trailers and extensions
// are parsed through it too; what it rejects is in the fixture rows.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChunkWalker } from '../../src/http1/chunk-walker.ts';
import { runs } from '../support/run-size.ts';
import { chunkedBody } from './arbitraries.ts';
import { requestRows } from './fixtures/requests.ts';
import { responseRows } from './fixtures/responses.ts';
import { decodeCanonical } from './message-reading.ts';

type Walk = { readonly pieces: Buffer[]; readonly consumed: number; readonly verdict: string };

/** Walks the segments one after the other. */
function walk(kind: 'request' | 'response', segments: readonly Buffer[]): Walk {
  const walker = new ChunkWalker(kind);
  const pieces: Buffer[] = [];
  let consumed = 0;
  for (const segment of segments) consumed += walker.walk(segment, 0, (piece) => pieces.push(piece));
  return { pieces, consumed, verdict: walker.error?.code ?? (walker.done ? 'done' : 'more') };
}

function textOf(pieces: readonly Buffer[]): string {
  return Buffer.concat(pieces).toString('latin1');
}

function split(wire: string, cuts: readonly number[]): Buffer[] {
  const ends = [...cuts.map((cut) => cut % (wire.length + 1)), wire.length].toSorted((a, b) => a - b);
  return ends.map((end, i) => Buffer.from(wire.slice(ends[i - 1] ?? 0, end), 'latin1'));
}

describe('over any split', () => {
  const cuts = fc.array(fc.nat(), { maxLength: 8 });

  it('a valid body decodes to its data, and only its own bytes are consumed', () => {
    fc.assert(
      fc.property(chunkedBody, cuts, ({ wire, data }, cuts) => {
        const whole = walk('response', [Buffer.from(`${wire}next`, 'latin1')]);
        expect([decodeCanonical(textOf(whole.pieces)), whole.consumed]).toEqual([data, wire.length]);
        const parts = walk('response', split(`${wire}next`, cuts));
        expect([decodeCanonical(textOf(parts.pieces)), parts.consumed, parts.verdict]).toEqual([
          data,
          wire.length,
          'done',
        ]);
      }),
    );
  });

  it('a valid body is emitted alike byte by byte, but for capitals in a size', () => {
    fc.assert(
      fc.property(chunkedBody, ({ wire, data }) => {
        const bytes = [...Buffer.from(wire, 'latin1')].map((byte) => Buffer.from([byte]));
        const text = textOf(walk('response', bytes).pieces);
        expect(decodeCanonical(text)).toBe(data);
        expect(text).toHaveLength(textOf(walk('response', split(wire, [])).pieces).length);
      }),
    );
  });

  it('a canonical body goes through as it is, in both directions', () => {
    fc.assert(
      fc.property(chunkedBody, cuts, ({ wire, data }, cuts) => {
        const canonical = textOf(walk('response', split(wire, [])).pieces);
        for (const kind of ['request', 'response'] as const) {
          expect(textOf(walk(kind, split(canonical, [])).pieces)).toBe(canonical);
          const parts = textOf(walk(kind, split(canonical, cuts)).pieces);
          expect([decodeCanonical(parts), parts.length]).toEqual([data, canonical.length]);
        }
      }),
    );
  });

  const bodies = [...requestRows, ...responseRows]
    .map(({ name, wire }) => ({ name, body: wire.split('chunked\r\n\r\n')[1] ?? '' }))
    .filter(({ body }) => body.length > 0 && body.length < 200);

  it.each(bodies)('the same verdict and nothing behind it: $name', ({ body }) => {
    for (const kind of ['request', 'response'] as const) {
      const whole = walk(kind, split(body, []));
      for (let cut = 0; cut <= body.length; cut++) {
        const { consumed, verdict } = walk(kind, split(body, [cut]));
        expect([consumed, verdict]).toEqual([whole.consumed, whole.verdict]);
      }
    }
  });
});

describe('the pieces emitted', () => {
  const pieceTexts = (kind: 'request' | 'response', ...segments: string[]): string[] =>
    walk(
      kind,
      segments.map((text) => Buffer.from(text, 'latin1')),
    ).pieces.map((piece) => piece.toString('latin1'));

  it('are the buffer itself when all of it is canonical', () => {
    const bytes = Buffer.from('3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n', 'latin1');
    const { pieces } = walk('request', [bytes]);
    expect(pieces).toHaveLength(1);
    expect(pieces[0]).toBe(bytes);
  });

  it('share their memory with the data', () => {
    const bytes = Buffer.from('03\r\nabc\r\n0\r\n\r\n', 'latin1');
    const [, data] = walk('response', [bytes]).pieces;
    expect(data?.buffer).toBe(bytes.buffer);
    expect(data?.byteOffset).toBe(bytes.byteOffset + 4);
  });

  it.each([
    [
      'a size in capitals passes',
      ['A\r\n0123456789\r\na\r\n0123456789\r\n'],
      ['A\r\n0123456789\r\na\r\n0123456789\r\n'],
    ],
    [
      'a size in capitals that was cut is written anew',
      ['A', '\r\n0123456789\r\n'],
      ['a\r\n', '0123456789\r\n'],
    ],
    [
      'runs before and after stay whole',
      ['1\r\na\r\n02\r\nbc\r\n1\r\nd\r\n'],
      ['1\r\na\r\n', '2\r\n', 'bc\r\n1\r\nd\r\n'],
    ],
    ['a head waits until it is whole', ['1\r\na\r\n', '1', '\r\nb\r\n'], ['1\r\na\r\n', '1\r\n', 'b\r\n']],
    ['data does not wait', ['5\r\nab', 'cde\r', '\n'], ['5\r\nab', 'cde\r', '\n']],
    ['an extension is dropped', ['3;a="b"\r\nabc\r\n'], ['3\r\n', 'abc\r\n']],
    ['trailers are dropped', ['1\r\na\r\n0\r\nX: y\r\n\r\n'], ['1\r\na\r\n', '0\r\n\r\n']],
    ['the end waits for its trailers', ['0\r\nX: y\r\n'], []],
    ['the end waits for its blank line', ['1\r\na\r\n0\r\n', '\r', '\n'], ['1\r\na\r\n', '0\r\n\r\n']],
    ['nothing of a segment with an error is emitted', ['1\r\na\r\n', '1\r\nb\r\nx'], ['1\r\na\r\n']],
  ])('%s', (_name, segments, pieces) => {
    expect(pieceTexts('response', ...segments)).toEqual(pieces);
  });
});

describe('a walker that is at its end', () => {
  it('consumes nothing more when done', () => {
    const walker = new ChunkWalker('request');
    const emitted: Buffer[] = [];
    const bytes = Buffer.from('GET 0\r\n\r\nGET /', 'latin1');
    expect(walker.walk(bytes, 4, (piece) => emitted.push(piece))).toBe(9);
    expect(walker.walk(bytes, 9, (piece) => emitted.push(piece))).toBe(9);
    expect([textOf(emitted), walker.done]).toEqual(['0\r\n\r\n', true]);
  });

  it('consumes nothing more after an error', () => {
    const walker = new ChunkWalker('request');
    const emitted: Buffer[] = [];
    walker.walk(Buffer.from('x'), 0, (piece) => emitted.push(piece));
    expect(walker.walk(Buffer.from('0\r\n\r\n'), 0, (piece) => emitted.push(piece))).toBe(0);
    expect([emitted, walker.done, walker.error?.code]).toEqual([[], false, 'chunk_size_malformed']);
  });

  it('never throws on any bytes', () => {
    const bytes = fc.array(fc.constantFrom('\r\n', '\r', '\n', '0', '1', 'a', ';', ':', '"', '=', 'x', '\0'));
    fc.assert(
      fc.property(bytes, fc.boolean(), (parts, isRequest) => {
        walk(isRequest ? 'request' : 'response', split(parts.join(''), []));
      }),
      { numRuns: runs(2000) },
    );
  });
});
