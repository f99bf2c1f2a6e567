import { zstdCompressSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { unpackPayload } from '../../../../src/platform/traces/runs/payload.ts';

it.each(['{"a":1}', 'null', '""', '[]', ` ${'x'.repeat(10)}`])(
  'the JSON %s is the same from a frame and as itself',
  async (text) => {
    expect((await unpackPayload(Buffer.from(text))).toString()).toBe(text);
    expect((await unpackPayload(zstdCompressSync(Buffer.from(text)))).toString()).toBe(text);
  },
);
