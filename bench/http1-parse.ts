// The cost of one head in nanoseconds: parsing, framing, connection fields, rewriting. `node bench/http1-parse.ts`.
import { ChunkWalker } from '../src/http1/chunk-walker.ts';
import { readConnectionFields } from '../src/http1/connection-fields.ts';
import { isHeadError } from '../src/http1/head-error.ts';
import { requestFraming, responseFraming } from '../src/http1/framing.ts';
import {
  parseRequestHead,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
} from '../src/http1/head-parser.ts';
import { buildHead, fieldLine, rewriteRequestHead } from '../src/http1/head-writer.ts';

const ROUNDS = 9;
const CALLS = 200_000;
const limits = { maxHeadBytes: 16_384, maxFields: 100, maxTargetBytes: 8192 };

const request: Buffer = buildHead('POST /v1/chat/completions?stream=true HTTP/1.1', [
  ['Host', 'api.example.com'],
  ['Accept', 'application/json'],
  ['Accept-Encoding', 'gzip, deflate, br, zstd'],
  ['Connection', 'keep-alive'],
  ['User-Agent', 'example-sdk/1.61.0 (linux; x64) node/26.10.0'],
  ['Content-Type', 'application/json'],
  ['X-Request-Id', '0f0c0f6e-6c1f-4f43-9a25-6f7b3c1d2e4a'],
  ['Authorization', 'Bearer placeholder-placeholder-placeholder'],
  ['Traceparent', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'],
  ['Content-Length', '128'],
]);
const response: Buffer = buildHead('HTTP/1.1 200 OK', [
  ['Date', 'Thu, 19 Nov 2026 10:00:00 GMT'],
  ['Content-Type', 'application/json'],
  ['Content-Length', '512'],
  ['Connection', 'keep-alive'],
  ['Keep-Alive', 'timeout=5'],
  ['Server', 'example'],
  ['X-Request-Id', 'req_0f0c0f6e6c1f4f439a256f7b3c1d2e4a'],
  ['Strict-Transport-Security', 'max-age=31536000; includeSubDomains; preload'],
  ['Set-Cookie', 'session=0f0c0f6e6c1f4f439a256f7b; path=/; Secure; HttpOnly'],
  ['CF-Ray', '8e1f2f3a4b5c6d7e-FRA'],
]);
const injected: Buffer = fieldLine('Authorization', 'Bearer sk-example-example-example-example');
const chunks: Buffer = Buffer.from(`${'400\r\n'}${'x'.repeat(1024)}\r\n`.repeat(16), 'latin1');

function parsedRequest(): RequestHead {
  const head = parseRequestHead(request, 0, limits);
  if (head === undefined || isHeadError(head)) throw new Error('the sample request must parse');
  return head;
}

function parsedResponse(): ResponseHead {
  const head = parseResponseHead(response, 0, limits);
  if (head === undefined || isHeadError(head)) throw new Error('the sample response must parse');
  return head;
}

function forwardRequest(): number {
  const head = parsedRequest();
  requestFraming(head);
  const connection = readConnectionFields(head);
  if (isHeadError(connection)) throw new Error('the sample request must pass');
  return rewriteRequestHead(head, { drop: connection.drop, append: [injected] }).length;
}

const drop: Uint8Array = Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 1, 0, 0);

function measure(name: string, call: () => unknown): void {
  const nanoseconds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const started = process.hrtime.bigint();
    for (let i = 0; i < CALLS; i++) call();
    nanoseconds.push(Number(process.hrtime.bigint() - started) / CALLS);
  }
  nanoseconds.sort((a, b) => a - b);
  const [best = 0, median = 0, worst = 0] = [nanoseconds[0], nanoseconds[ROUNDS >> 1], nanoseconds.at(-1)];
  console.log(`${name.padEnd(44)} ${median.toFixed(0)} ns (${best.toFixed(0)} to ${worst.toFixed(0)})`);
}

const sampleRequest = parsedRequest();
const sampleResponse = parsedResponse();
measure(`parse a request head (${request.length} bytes, 10 fields)`, parsedRequest);
measure(`parse a response head (${response.length} bytes, 10 fields)`, parsedResponse);
measure('framing of a request', () => requestFraming(sampleRequest));
measure('framing of a response', () => responseFraming(sampleResponse, 'GET'));
measure('connection fields of a request', () => readConnectionFields(sampleRequest));
measure('connection fields of a response', () => readConnectionFields(sampleResponse));
measure('rewrite a head: 2 lines out, 1 in', () =>
  rewriteRequestHead(sampleRequest, { drop, append: [injected] }),
);
measure('request: parse, frame, rewrite', forwardRequest);
measure('walk 16 chunks of 1 KiB', () => new ChunkWalker('response').walk(chunks, 0, () => undefined));
