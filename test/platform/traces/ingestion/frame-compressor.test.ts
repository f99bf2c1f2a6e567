import { randomBytes } from 'node:crypto';
import { zstdDecompressSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { compressFrame, FRAME_BYTES } from '../../../../src/platform/traces/ingestion/frame-compressor.ts';
import { unpackPayload } from '../../../../src/platform/traces/runs/payload.ts';

const texts = Array.from({ length: 40 }, (_, at) =>
  at % 3 === 0
    ? Buffer.from(
        randomBytes(90_000 + at)
          .toString('base64')
          .slice(0, FRAME_BYTES),
      )
    : Buffer.alloc(at % 3 === 1 ? FRAME_BYTES : at, 'x'),
);

it('each text is a frame of its own, however many are compressed at once', async () => {
  const frames = await Promise.all(texts.map(compressFrame));
  for (const [at, pieces] of frames.entries())
    expect(zstdDecompressSync(Buffer.concat(pieces)).equals(texts[at]!)).toBe(true);
});

it('frames behind each other are one payload', async () => {
  const frames: Buffer[] = [];
  for (const text of texts) frames.push(...(await compressFrame(text)));
  expect((await unpackPayload(Buffer.concat(frames))).equals(Buffer.concat(texts))).toBe(true);
});
