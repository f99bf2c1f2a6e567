// Multipart bodies in pieces of any size: parts, limits, and what is no multipart body.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BodyError } from '../../../src/base/http/body-error.ts';
import { type MultipartLimits, readMultipart } from '../../../src/base/http/multipart.ts';

const LIMITS: MultipartLimits = { parts: 1000, headerBytes: 1000, nameChars: 100 };
const BOUNDARY = 'b0';

type Sent = { readonly name: string; readonly body: Uint8Array };

function encode(parts: readonly Sent[], boundary = BOUNDARY): Buffer {
  const pieces = parts.flatMap(({ name, body }) => [
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n`),
    body,
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
}

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** The parts, or the kind of the error. */
async function decode(
  bytes: string | Uint8Array,
  { size = 1000, limits = {} }: { readonly size?: number; readonly limits?: Partial<MultipartLimits> } = {},
): Promise<readonly (readonly [name: string, body: string])[] | string> {
  const found: [string, string][] = [];
  const pieces = inPieces(Buffer.from(bytes), size);
  try {
    for await (const { name, body } of readMultipart(pieces, BOUNDARY, { ...LIMITS, ...limits }))
      found.push([name, Buffer.concat(await Array.fromAsync(body)).toString('latin1')]);
    return found;
  } catch (error) {
    if (error instanceof BodyError) return error.kind;
    throw error;
  }
}

describe('a multipart body', () => {
  it('in one large piece has its parts, with boundaries at every place of it', async () => {
    const parts = Array.from({ length: 400 }, (_, at) => ({ name: `n${at}`, body: Buffer.alloc(at, 'x') }));
    const expected = parts.map(({ name, body }) => [name, body.toString()]);
    expect(await decode(encode(parts), { size: Infinity })).toEqual(expected);
  });

  it('has its parts, whatever the pieces in which it arrives', async () => {
    // Made of what looks like boundaries.
    const body = fc
      .array(fc.constantFrom('\r', '\n', '\r\n', '-', '--', '--b', '\r\n--b', '\r\n-', 'b0', '\0', 'x'), {
        maxLength: 12,
      })
      .map((pieces) => Buffer.from(pieces.join('')))
      .filter((bytes) => !`\r\n${bytes.toString()}`.includes('\r\n--b0'));
    const parts = fc.array(fc.record({ name: fc.stringMatching(/^[a-z.]{1,5}$/), body }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(parts, fc.integer({ min: 1, max: 40 }), async (sent, size) => {
        expect(await decode(encode(sent), { size })).toEqual(
          sent.map(({ name, body: bytes }) => [name, bytes.toString('latin1')]),
        );
      }),
    );
  });

  it('may have text before its first boundary and behind its last one', async () => {
    const body = encode([{ name: 'a', body: Buffer.from('1') }]);
    for (const size of [1, 7, 1000])
      expect(await decode(`ignore this\r\n${String(body)}--b0\r\nand this`, { size })).toEqual([['a', '1']]);
  });

  const part = '--b0\r\nContent-Disposition: form-data; name="a"\r\n\r\n';
  it.each([
    ['nothing', ''],
    ['no boundary', 'a=1&b=2'],
    ['no last boundary', `${part}1`],
    ['half a last boundary', `${part}1\r\n--b0-`],
    ['another boundary', `${part}1\r\n--b1--`],
    ['an end within a header', '--b0\r\nContent-Disposition: form-data; name="a"\r\n'],
    ['a boundary within a header', '--b0\r\nContent-Disposition: form-data; name="a"\r\n--b0--\r\n'],
    ['a part without header', '--b0\r\n\r\n1\r\n--b0--\r\n'],
    ['a part without name', '--b0\r\nContent-Disposition: form-data\r\n\r\n1\r\n--b0--\r\n'],
    ['a boundary that only begins as its own', `${part}1\r\n--b0xyz\r\n${part}2\r\n--b0--`],
  ])('with %s is rejected', async (_, body) => {
    for (const size of [1, 7, 1000]) expect(await decode(body, { size })).toBe('malformed_multipart');
  });

  it('with too many parts, too large a header or too long a name is rejected', async () => {
    const body = encode(Array.from({ length: 4 }, () => ({ name: 'abc', body: Buffer.from('1') })));
    expect(await decode(body, { limits: { parts: 4, nameChars: 3 } })).toHaveLength(4);
    expect(await decode(body, { limits: { parts: 3 } })).toBe('too_large');
    expect(await decode(body, { limits: { nameChars: 2 } })).toBe('too_large');
    expect(await decode(body, { limits: { headerBytes: 30 } })).toBe('too_large');
    const fields = Array.from({ length: 40 }, (_, at) => `x${at}: 1\r\n`).join('');
    expect(await decode(`--b0\r\n${fields}Content-Disposition: form-data; name="a"\r\n\r\n1\r\n--b0--`)).toBe(
      'too_large',
    );
  });

  it('whose part is not read to its end goes on with the next part', async () => {
    const parts = ['a', 'b', 'c'].map((name) => ({ name, body: Buffer.alloc(10_000, name) }));
    const seen: string[] = [];
    for await (const { name, body } of readMultipart(inPieces(encode(parts), 100), BOUNDARY, LIMITS)) {
      seen.push(name);
      if (name === 'b') for await (const piece of body) if (piece.length > 0) break;
    }
    expect(seen).toEqual(['a', 'b', 'c']);
  });

  it('is read no faster than its parts, and left when its consumer leaves', async () => {
    let taken = 0;
    let isLeft = false;
    async function* content(): AsyncGenerator<Uint8Array> {
      try {
        const parts = Array.from({ length: 900 }, (_, at) => ({
          name: String(at),
          body: Buffer.alloc(1000),
        }));
        for await (const piece of inPieces(encode(parts), 10_000)) {
          taken += 1;
          yield piece;
        }
      } finally {
        isLeft = true;
      }
    }
    let read = 0;
    for await (const { body } of readMultipart(content(), BOUNDARY, LIMITS)) {
      for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
      // A part is a little longer than 1000 bytes.
      expect(taken).toBeLessThanOrEqual(read / 8 + 2);
      if (read === 100) break;
      await Array.fromAsync(body);
      read += 1;
    }
    expect([read, isLeft]).toEqual([100, true]);
  });

  it('throws what its source throws, within a part and between parts', async () => {
    async function* content(text: string): AsyncGenerator<Uint8Array> {
      yield Buffer.from(text);
      throw new Error('left');
    }
    for (const text of [`${part}1`, '--b0\r\nContent-', '']) {
      const read = async (): Promise<void> => {
        for await (const { body } of readMultipart(content(text), BOUNDARY, LIMITS))
          await Array.fromAsync(body);
      };
      await expect(read()).rejects.toThrow('left');
    }
  });
});
