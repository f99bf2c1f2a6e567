// The program of a test: a server that streams multipart uploads and discards them. It responds with the bytes of the parts
// and with its memory before the request and at its peak.
import { jsonResponse } from '../../src/base/http/http-response.ts';
import { type Exchange, HttpServer } from '../../src/base/http/http-server.ts';
import { readMultipart } from '../../src/base/http/multipart.ts';
import { readBoundary } from '../../src/base/http/multipart-header.ts';
import { readContent } from '../../src/base/http/request-content.ts';
import { createLog } from '../../src/base/log.ts';

export type Upload = { readonly bytes: number; readonly before: number; readonly peak: number };

const GIB = 1024 * 1024 * 1024;
const LIMITS = {
  codings: ['zstd'],
  maxSentBytes: GIB,
  maxBytes: GIB,
  maxRatio: 100,
  idleMs: 30_000,
  totalMs: 300_000,
} as const;

async function receive(exchange: Exchange): Promise<Upload> {
  const before = process.memoryUsage.rss();
  let [bytes, peak, pieces] = [0, before, 0];
  const boundary = readBoundary(exchange.head.field('content-type'));
  const parts = { parts: 100_000, headerBytes: 8192, nameChars: 200 };
  for await (const { body } of readMultipart(readContent(exchange, LIMITS), boundary, parts))
    for await (const piece of body) {
      bytes += piece.length;
      pieces += 1;
      if (pieces % 16 === 0) peak = Math.max(peak, process.memoryUsage.rss());
    }
  return { bytes, before, peak };
}

const server = new HttpServer({
  limits: { headBytes: 16_384, headMs: 30_000, requestMs: 30_000, keepAliveMs: 30_000 },
  log: createLog('error', process.stderr),
  handle: async (exchange) => jsonResponse(200, await receive(exchange)),
  reject: () => ({ status: 400 }),
});
server.listener.listen({ host: '127.0.0.1', port: 0 }, () => {
  console.log((server.listener.address() as { readonly port: number }).port);
});
