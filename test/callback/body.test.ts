// The body of a callback's response: decoded from at most one content coding, and bounded before and after decoding.
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readBody } from '../../src/callback/body.ts';

const MAX = 65_536;

async function* chunksOf(...chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
}

describe('a body', () => {
  const text = Buffer.from('{"headers":{}}');
  it.each([
    ['without a coding', undefined, text],
    ['as identity', 'identity', text],
    ['in gzip', 'GZIP', gzipSync(text)],
    ['in x-gzip', 'x-gzip', gzipSync(text)],
    ['in deflate', 'deflate', deflateSync(text)],
    ['in br', 'br', brotliCompressSync(text)],
  ])('%s is decoded', async (_, coding, bytes) => {
    expect(await readBody(chunksOf(bytes.subarray(0, 3), bytes.subarray(3)), coding)).toEqual(text);
  });

  it.each(['gzip, gzip', 'zstd', ['gzip', 'gzip']])('in %s is not accepted', async (coding) => {
    expect(await readBody(chunksOf(gzipSync(text)), coding)).toBe('unsupported content coding');
  });

  it('may have the maximum and no byte more', async () => {
    expect(await readBody(chunksOf(Buffer.alloc(MAX - 1), Buffer.alloc(1)), undefined)).toHaveLength(MAX);
    expect(await readBody(chunksOf(Buffer.alloc(MAX), Buffer.alloc(1)), undefined)).toBe(
      'body over 65536 bytes',
    );
  });

  it.each([
    ['is too large when decoded', gzipSync(Buffer.alloc(MAX + 1))],
    ['is not in its coding', text],
  ])('that %s has a reason in place of bytes', async (_, bytes) => {
    expect(await readBody(chunksOf(bytes), 'gzip')).toMatch(/^body is not valid in its content coding/);
  });

  it('that breaks off throws the error of its transport', async () => {
    const broken = async function* (): AsyncGenerator<Buffer> {
      yield text;
      throw new Error('reset');
    };
    await expect(readBody(broken(), undefined)).rejects.toThrow('reset');
  });
});
