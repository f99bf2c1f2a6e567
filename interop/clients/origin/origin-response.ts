// How the parts of the origin read a request and respond to it, over HTTP/1.1 and HTTP/2 alike.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';

export type OriginRequest = IncomingMessage | Http2ServerRequest;
export type OriginResponse = ServerResponse | Http2ServerResponse;

/** The two kinds have the same method, whose types disagree about its optional parameters. */
export function writeHead(
  response: OriginResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
): void {
  (response as ServerResponse).writeHead(status, headers);
}

export async function readBody(request: OriginRequest): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

export function send(
  response: OriginResponse,
  status: number,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = Buffer.from(body as string);
  writeHead(response, status, { 'content-length': String(bytes.length), ...headers });
  response.end(bytes);
}

export function sendJson(response: OriginResponse, status: number, value: unknown): void {
  send(response, status, JSON.stringify(value), { 'content-type': 'application/json' });
}

export type ServerEvent = { readonly event?: string; readonly data: unknown };

const GAP_MS = 100;

/** Server-sent events, one every 100 ms, so that a client sees whether somebody on the way collects them. */
export async function sendEvents(response: OriginResponse, events: readonly ServerEvent[]): Promise<void> {
  writeHead(response, 200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const write = response.write.bind(response) as (text: string) => boolean;
  for (const { event, data } of events) {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    write(`${event === undefined ? '' : `event: ${event}\n`}data: ${text}\n\n`);
    await sleep(GAP_MS);
  }
  response.end();
}
