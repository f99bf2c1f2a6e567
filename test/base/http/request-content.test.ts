// Bodies that are streamed, over sockets: what a client sees of each limit, and what becomes of its connection.
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { jsonResponse } from '../../../src/base/http/http-response.ts';
import { type Exchange, HttpServer } from '../../../src/base/http/http-server.ts';
import { readMultipart } from '../../../src/base/http/multipart.ts';
import { readBoundary } from '../../../src/base/http/multipart-header.ts';
import { RequestError } from '../../../src/base/http/request-body.ts';
import { type ContentLimits, readContent } from '../../../src/base/http/request-content.ts';
import { createLog } from '../../../src/base/log.ts';
import { toErrorResponse } from '../../../src/platform/api/errors.ts';
import { WireClient, type WireResponse } from '../../support/wire-client.ts';

const LIMITS: ContentLimits = {
  codings: ['gzip', 'zstd'],
  maxSentBytes: 4000,
  maxBytes: 4_000_000,
  maxRatio: 1000,
  idleMs: 30_000,
  totalMs: 60_000,
};
const PARTS = { parts: 10, headerBytes: 1000, nameChars: 100 };

type Scene = { readonly port: number; readonly errors: unknown[] };
const opened: HttpServer[] = [];
afterEach(async () => {
  for (const server of opened.splice(0)) await server.close(0, 'end');
});

/** Responds with the number of bytes; at /parts, of each part. */
async function open(limits: Partial<ContentLimits> = {}, requestMs = 30_000): Promise<Scene> {
  const errors: unknown[] = [];
  const server = new HttpServer({
    limits: { headBytes: 16_384, headMs: 30_000, requestMs, keepAliveMs: 30_000 },
    log: createLog('silent', { write: () => undefined }),
    reject: (kind) => toErrorResponse(new RequestError(kind)) ?? { status: 500 },
    async handle(exchange) {
      try {
        return jsonResponse(200, await measure(exchange, { ...LIMITS, ...limits }));
      } catch (error) {
        errors.push(error);
        return toErrorResponse(error) ?? { status: 500 };
      }
    },
  });
  opened.push(server);
  await new Promise<void>((resolve) => server.listener.listen({ host: '127.0.0.1', port: 0 }, resolve));
  return { port: (server.listener.address() as { port: number }).port, errors };
}

async function measure(exchange: Exchange, limits: ContentLimits): Promise<unknown> {
  const content = readContent(exchange, limits);
  if (exchange.head.target !== '/parts') return count(content);
  const boundary = readBoundary(exchange.head.field('content-type'));
  const sizes: Record<string, number> = {};
  for await (const { name, body } of readMultipart(content, boundary, PARTS)) sizes[name] = await count(body);
  return sizes;
}

async function count(pieces: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const piece of pieces) bytes += piece.length;
  return bytes;
}

const head = (fields: string, path = '/'): string => `POST ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n\r\n`;
const post = (body: Buffer | string, fields = 'X: 1', path = '/'): Buffer =>
  Buffer.concat([
    Buffer.from(head(`Content-Length: ${Buffer.byteLength(body)}\r\n${fields}`, path)),
    Buffer.from(body),
  ]);

async function ask(port: number, request: string | Buffer): Promise<WireResponse> {
  await using client = await WireClient.connect(port);
  await client.send(request);
  return await client.readResponse();
}

const field = ({ head: { headers } }: WireResponse, name: string): string | undefined =>
  headers.find(([one]) => one.toLowerCase() === name)?.[1];

const GZIP = 'Content-Encoding: gzip';
const ZSTD = 'Content-Encoding: zstd';
const noise = (bytes: number): Buffer =>
  Buffer.from(Array.from({ length: bytes }, () => Math.random() * 256));

describe('a streamed body', () => {
  it('is read plain, in gzip and in zstd, and its connection serves the next request', async () => {
    const { port } = await open();
    await using client = await WireClient.connect(port);
    const requests = [
      [post('abc'), '3'],
      [post(''), '0'],
      [post('', GZIP), '0'],
      [post(gzipSync('abcd'), GZIP), '4'],
      [post(zstdCompressSync(Buffer.from('abcde')), ZSTD), '5'],
      [post(Buffer.concat([gzipSync('ab'), gzipSync('c')]), 'Content-Encoding: x-gzip'), '3'],
    ] as const;
    for (const [request, length] of requests) {
      await client.send(request);
      const response = await client.readResponse();
      expect([response.head.status, response.text.trim(), field(response, 'connection')]).toEqual([
        200,
        length,
        'keep-alive',
      ]);
    }
  });

  it.each<[name: string, request: string | Buffer, status: number, code: string]>([
    ['in another coding', post('abc', 'Content-Encoding: br'), 415, 'content_coding'],
    ['in two codings', post('abc', 'Content-Encoding: gzip, zstd'), 415, 'content_coding'],
    ['of too many bytes', post(noise(4001)), 413, 'too_large'],
    [
      'of too many bytes in chunks',
      head('Transfer-Encoding: chunked') + `fa1\r\n${'a'.repeat(4001)}`,
      413,
      'too_large',
    ],
    ['of too many bytes in gzip', post(gzipSync(noise(5000)), GZIP), 413, 'too_large'],
    ['that decodes to too much', post(gzipSync(Buffer.alloc(4_000_001)), GZIP), 413, 'too_large'],
    ['that is a bomb', post(zstdCompressSync(Buffer.alloc(1_200_000)), ZSTD), 413, 'too_large'],
    ['that is not gzip', post('abc', GZIP), 400, 'not_decodable'],
    ['that is cut off gzip', post(gzipSync('abc').subarray(0, 20), GZIP), 400, 'not_decodable'],
    [
      'that is gzip and more',
      post(Buffer.concat([gzipSync('abc'), Buffer.from('x')]), GZIP),
      400,
      'not_decodable',
    ],
  ])('%s is rejected', async (_, request, status, code) => {
    const { port, errors } = await open();
    const response = await ask(port, request);
    expect([response.head.status, JSON.parse(response.text).code]).toEqual([status, code]);
    expect(errors).toHaveLength(1);
  });

  it('in another coding is rejected with those that are accepted, before it is asked for', async () => {
    const { port } = await open();
    const response = await ask(
      port,
      head('Expect: 100-continue\r\nContent-Length: 3\r\nContent-Encoding: br'),
    );
    expect([response.head.status, field(response, 'accept-encoding'), field(response, 'connection')]).toEqual(
      [415, 'gzip, zstd', 'close'],
    );
    const large = await ask(port, head('Expect: 100-continue\r\nContent-Length: 4001'));
    expect([large.head.status, field(large, 'connection')]).toEqual([413, 'close']);
  });

  it('that was received whole and rejected leaves a connection that serves the next request', async () => {
    const { port } = await open();
    await using client = await WireClient.connect(port);
    for (const request of [post('abc', GZIP), post(gzipSync('abc'), GZIP)]) {
      await client.send(request);
      const response = await client.readResponse();
      expect(field(response, 'connection')).toBe('keep-alive');
    }
  });

  it('is rejected in the middle, and its connection ends, once the limit is passed', async () => {
    const { port } = await open();
    await using client = await WireClient.connect(port);
    // What follows never comes: the response does not wait for it.
    await client.send(head('Transfer-Encoding: chunked') + `1388\r\n${'a'.repeat(4500)}`);
    const response = await client.readResponse();
    expect([response.head.status, field(response, 'connection')]).toEqual([413, 'close']);
    expect(await client.finished).toBe('end');
  });

  it('whose client stops sending gets a 408 after the idle time, or when the whole takes too long', async () => {
    for (const limits of [{ idleMs: 100 }, { totalMs: 100 }]) {
      const { port } = await open(limits);
      const response = await ask(port, head('Content-Length: 5') + 'ab');
      expect([response.head.status, field(response, 'connection')]).toEqual([408, 'close']);
      expect(JSON.parse(response.text).code).toBe('late');
    }
  });

  it('may take longer than a body that is read whole', async () => {
    const { port } = await open({}, 1);
    await using client = await WireClient.connect(port);
    await client.send(head('Content-Length: 2') + 'a');
    // The time of other bodies is over with the next turn of the clock.
    const before = Date.now();
    await expect.poll(() => Date.now() - before).toBeGreaterThan(5);
    await client.send('b');
    expect((await client.readResponse()).text.trim()).toBe('2');
  });

  it('whose client leaves ends, with its decoder', async () => {
    const { port, errors } = await open();
    const client = await WireClient.connect(port);
    await client.send(`${head(`Content-Length: 500\r\n${GZIP}`)}`);
    await client.send(gzipSync('abc').subarray(0, 12));
    client.reset();
    await expect.poll(() => errors).toHaveLength(1);
    expect(errors).toMatchObject([{ kind: 'client_gone' }]);
  });
});

describe('a streamed multipart body', () => {
  const type = 'Content-Type: multipart/form-data; boundary=b0';
  const part = (name: string, body: string): string =>
    `--b0\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: application/json\r\n\r\n${body}\r\n`;

  it('is read plain and decoded', async () => {
    const { port } = await open();
    const body = `${part('post.1', '{}')}${part('post.1.inputs', 'abc')}--b0--\r\n`;
    for (const request of [
      post(body, type, '/parts'),
      post(zstdCompressSync(Buffer.from(body)), `${type}\r\n${ZSTD}`, '/parts'),
    ])
      expect(JSON.parse((await ask(port, request)).text)).toEqual({ 'post.1': 2, 'post.1.inputs': 3 });
  });

  it.each<[name: string, request: Buffer, status: number, code: string]>([
    ['of another type', post('{}', 'Content-Type: application/json', '/parts'), 415, 'content_type'],
    ['without boundary', post('', 'Content-Type: multipart/form-data', '/parts'), 400, 'malformed_multipart'],
    ['without last boundary', post(part('a', 'b'), type, '/parts'), 400, 'malformed_multipart'],
    ['of too many parts', post(part('a', '').repeat(11), type, '/parts'), 413, 'too_large'],
  ])('%s is rejected', async (_, request, status, code) => {
    const { port } = await open();
    const response = await ask(port, request);
    expect([response.head.status, JSON.parse(response.text).code]).toEqual([status, code]);
  });

  it('whose client stops in a part gets a 408, and one whose client leaves ends', async () => {
    const half = head(`Content-Length: 1000\r\n${type}`, '/parts') + part('a', 'b').slice(0, -2);
    expect((await ask((await open({ idleMs: 100 })).port, half)).head.status).toBe(408);
    const { port, errors } = await open();
    const client = await WireClient.connect(port);
    await client.send(half);
    client.reset();
    await expect.poll(() => errors).toMatchObject([{ kind: 'client_gone' }]);
  });
});
