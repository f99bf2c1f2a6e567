// Bodies in gzip and zstd, byte by byte and at once: several members, cut off, with bytes behind them, and bombs.
import { gzipSync, zstdCompressSync, constants } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { BodyError } from '../../../src/base/http/body-error.ts';
import {
  type ContentCoding,
  decodeContent,
  readContentCoding,
} from '../../../src/base/http/content-coding.ts';
import { readRequestHead } from '../../../src/base/http/request-head.ts';

const LIMITS = { maxBytes: 64 * 1024 * 1024, maxRatio: 100 };
const encode = { gzip: gzipSync, zstd: zstdCompressSync };
const codings = ['gzip', 'zstd'] as const;

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** The content, or the kind of the error. */
async function decode(
  bytes: Uint8Array,
  coding: ContentCoding,
  size = 1000,
  limits = LIMITS,
): Promise<string> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of decodeContent(inPieces(bytes, size), coding, limits)) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  } catch (error) {
    if (error instanceof BodyError) return error.kind;
    throw error;
  }
}

function codingOf(written: readonly string[], accepted: readonly ContentCoding[]): unknown {
  const rawHeaders = written.flatMap((value) => ['Content-Encoding', value]);
  try {
    return readContentCoding(readRequestHead({ rawHeaders }), accepted);
  } catch (error) {
    if (error instanceof BodyError) return { [error.kind]: error.fields };
    throw error;
  }
}

describe('Content-Encoding', () => {
  it('is one of those that are accepted, in any case, or identity', () => {
    expect(codingOf([], codings)).toBe(undefined);
    expect(codingOf(['Identity'], [])).toBe(undefined);
    expect(codingOf(['ZSTD'], codings)).toBe('zstd');
    expect(codingOf(['x-gzip'], codings)).toBe('gzip');
  });

  it.each([[['br']], [['gzip, gzip']], [['gzip', 'zstd']], [['']], [['gzip;q=1']]])(
    'of %j is rejected with those that are accepted',
    (written) => {
      expect(codingOf(written, codings)).toEqual({ content_coding: { 'Accept-Encoding': 'gzip, zstd' } });
    },
  );

  it('is rejected where none is accepted', () => {
    expect(codingOf(['gzip'], [])).toEqual({ content_coding: { 'Accept-Encoding': 'identity' } });
    expect(codingOf(['x-gzip'], ['zstd'])).toEqual({ content_coding: { 'Accept-Encoding': 'zstd' } });
  });
});

describe.each(codings)('a body in %s', (coding) => {
  const one = encode[coding](Buffer.from('hello '));
  const two = encode[coding](Buffer.from('world'));

  it.each([1, 7, 1000])('is decoded in pieces of %i bytes', async (size) => {
    expect(await decode(one, coding, size)).toBe('hello ');
    expect(await decode(Buffer.concat([one, two]), coding, size)).toBe('hello world');
    expect(await decode(encode[coding](Buffer.alloc(0)), coding, size)).toBe('');
  });

  it.each([1, 7, 1000])('that is cut off is rejected, in pieces of %i bytes', async (size) => {
    for (let length = 0; length < one.length; length += 1)
      expect(await decode(one.subarray(0, length), coding, size)).toBe('not_decodable');
    for (let length = 1; length < two.length; length += 1)
      expect(await decode(Buffer.concat([one, two.subarray(0, length)]), coding, size)).toBe('not_decodable');
  });

  it.each([1, 7, 1000])('with other bytes behind it is rejected, in pieces of %i bytes', async (size) => {
    for (const more of ['garbage', '\0\0\0\0\0\0\0\0\0\0', '\x1f', '\x28', ' '])
      expect(await decode(Buffer.concat([one, Buffer.from(more)]), coding, size)).toBe('not_decodable');
  });

  it('that is damaged, or something else, is rejected', async () => {
    expect(await decode(Buffer.from('hello'), coding)).toBe('not_decodable');
    const other = coding === 'gzip' ? encode.zstd : encode.gzip;
    expect(await decode(other(Buffer.from('hello')), coding)).toBe('not_decodable');
    const damaged = Buffer.concat([one.subarray(0, 5), Buffer.alloc(8, 0xff), one.subarray(13)]);
    expect(await decode(damaged, coding)).toBe('not_decodable');
  });

  it('that decodes to too much is rejected before more of it is decoded', async () => {
    const bomb = encode[coding](Buffer.alloc(32 * 1024 * 1024));
    expect(await decode(bomb, coding)).toBe('too_large');
    expect(await decode(bomb, coding, 1000, { maxBytes: 1000, maxRatio: 1e9 })).toBe('too_large');
    // A short text may repeat itself.
    const short = encode[coding](Buffer.alloc(1_000_000, 'a'));
    expect(await decode(short, coding)).toHaveLength(1_000_000);
  });

  it('asks for no more than is consumed, and leaves the body when its consumer leaves', async () => {
    let taken = 0;
    let isLeft = false;
    const bytes = encode[coding](Buffer.from(Array.from({ length: 4e6 }, () => Math.random() * 256)));
    async function* sent(): AsyncGenerator<Uint8Array> {
      try {
        for await (const piece of inPieces(bytes, 65_536)) {
          taken += 1;
          yield piece;
        }
      } finally {
        isLeft = true;
      }
    }
    for await (const piece of decodeContent(sent(), coding, LIMITS)) {
      expect(piece.length).toBeGreaterThan(0);
      for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
      break;
    }
    await expect.poll(() => isLeft).toBe(true);
    expect(taken).toBeLessThan(10);
  });

  it('throws what its source throws', async () => {
    async function* sent(): AsyncGenerator<Uint8Array> {
      yield one.subarray(0, 5);
      throw new Error('left');
    }
    const pieces = decodeContent(sent(), coding, LIMITS);
    await expect(pieces.next()).rejects.toThrow('left');
  });
});

it('a zstd frame that asks for a large window is rejected: the decoder would allocate it', async () => {
  const params = { [constants.ZSTD_c_windowLog]: 27 };
  const { createZstdCompress } = await import('node:zlib');
  const encoder = createZstdCompress({ params });
  // The size is not announced, so that the window is.
  encoder.write('a');
  encoder.end('b');
  const frame = Buffer.concat(await Array.fromAsync(encoder as AsyncIterable<Buffer>));
  expect(await decode(frame, 'zstd')).toBe('not_decodable');
});
