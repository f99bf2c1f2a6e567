// An origin for bodies and streams, HTTP/1.1 and HTTP/2, on Node's own servers: downloads of a given length, uploads that are
// counted, events with the time of their sending. It requires the injected Authorization below /v1/ and the client's own
// elsewhere. Started by one message.
import { type Http2ServerRequest, type Http2ServerResponse, createSecureServer } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { OriginOptions } from './origin.ts';

const PIECE: Buffer = Buffer.alloc(65_536, 'The quick brown fox jumps over the lazy dog. ');

async function respond(
  request: Http2ServerRequest,
  response: Http2ServerResponse,
  { injected, untouched }: OriginOptions,
): Promise<void> {
  const url = new URL(request.url, 'https://origin');
  const expected = url.pathname.startsWith('/v1/') ? injected : untouched;
  if (request.headers.authorization !== expected) {
    response.writeHead(500).end('Authorization has a wrong value');
    return;
  }
  const number = (name: string): number => Number(url.searchParams.get(name) ?? 0);
  if (url.pathname.endsWith('/down')) return sendBody(response, number('bytes'));
  if (url.pathname.endsWith('/events')) return sendEvents(response, number('count'), number('every_ms'));
  let bytes = 0;
  for await (const chunk of request) bytes += (chunk as Buffer).length;
  const body = JSON.stringify({ bytes });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}

async function sendBody(response: Http2ServerResponse, bytes: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes });
  function* pieces(): Generator<Buffer> {
    for (let left = bytes; left > 0; left -= PIECE.length) yield PIECE.subarray(0, left);
  }
  await pipeline(Readable.from(pieces()), response);
}

/** Each event contains the monotonic time of the machine, which the client has too. */
function sendEvents(response: Http2ServerResponse, count: number, everyMs: number): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  let sent = 0;
  const timer = setInterval(() => {
    response.write(`data: ${process.hrtime.bigint()}\n\n`);
    sent += 1;
    if (sent < count) return;
    clearInterval(timer);
    response.end();
  }, everyMs);
  response.on('close', () => clearInterval(timer));
}

process.once('message', (options: OriginOptions) => {
  const [first] = options.leaves;
  const server = createSecureServer(
    { cert: first?.chainPem ?? '', key: first?.keyPem ?? '', allowHTTP1: true },
    (request, response) => void respond(request, response, options).catch(() => response.stream?.close?.()),
  );
  for (const { host, chainPem: cert, keyPem: key } of options.leaves) server.addContext(host, { cert, key });
  server.on('sessionError', () => undefined);
  // A small piece must not wait for the acknowledgement of the one before: that would be measured as the delay of an event.
  server.on('connection', (socket: Socket) => socket.setNoDelay(true));
  // Otherwise every response over HTTP/1.1 has a Keep-Alive field: goproxy forwards it over HTTP/2, where it is malformed.
  Object.assign(server, { keepAliveTimeout: 0 });
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
});
process.on('disconnect', () => process.exit());
