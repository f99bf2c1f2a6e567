// What a large upload costs the process that receives it: memory for the pieces on their way, and never for a part.
import { randomFillSync } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { expect, it } from 'vitest';
import { projectRoot, SpawnedProcess } from '../../support/spawned-process.ts';
import type { Upload } from '../../support/upload-server.ts';

const MB = 1_000_000;
const PIECE = 62_500;

/** Parts of `partBytes` that no coding makes smaller. */
async function* multipart(bytes: number, partBytes: number): AsyncGenerator<Buffer> {
  for (let sent = 0; sent < bytes; sent += partBytes) {
    yield Buffer.from(`--b0\r\nContent-Disposition: form-data; name="post.${sent}"\r\n\r\n`);
    for (let at = 0; at < partBytes; at += PIECE) yield randomFillSync(Buffer.allocUnsafe(PIECE));
    yield Buffer.from('\r\n');
  }
  yield Buffer.from('--b0--\r\n');
}

async function upload(port: number, bytes: number, partBytes: number): Promise<Upload> {
  const headers = { 'Content-Type': 'multipart/form-data; boundary=b0', 'Content-Encoding': 'zstd' };
  const outgoing = request({ port, host: '127.0.0.1', method: 'POST', headers });
  const encoder = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 1 } });
  const [[response]] = await Promise.all([
    once(outgoing, 'response') as Promise<[IncomingMessage]>,
    pipeline(Readable.from(multipart(bytes, partBytes)), encoder, outgoing),
  ]);
  return JSON.parse(String(Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>))));
}

it('a multipart upload of 200 MB in zstd takes at most 40 MB of memory more', {
  tags: ['long'],
}, async () => {
  await using server = new SpawnedProcess(process.execPath, ['test/support/upload-server.ts'], {
    cwd: projectRoot,
  });
  const port = Number(await server.output((text) => text.includes('\n')));
  // So that the code is loaded and compiled.
  await upload(port, 10 * MB, MB);
  for (const partBytes of [MB, 100 * MB]) {
    const { bytes, before, peak } = await upload(port, 200 * MB, partBytes);
    expect(bytes).toBe(200 * MB);
    expect(peak - before).toBeLessThan(40 * MB);
  }
});
