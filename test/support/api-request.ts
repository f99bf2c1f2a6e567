// A request for the platform's API without a socket, and its response as text.
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { RequestBody } from '../../src/base/http/request-body.ts';
import { readRequestHead } from '../../src/base/http/request-head.ts';
import type { HttpResponse } from '../../src/base/http/http-response.ts';
import type { ApiRequest } from '../../src/platform/api/api-request.ts';

export type ApiRequestOptions = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A stream announces no length. */
  readonly body?: string | Uint8Array | ReadableStream<Uint8Array> | undefined;
  readonly peer?: string | undefined;
  readonly note?: ApiRequest['note'];
  readonly origin?: string | undefined;
  /** Of a client that leaves, and of a server that drains. */
  readonly left?: AbortSignal;
  readonly draining?: AbortSignal;
  /** Resolves when the response was read; never when absent. */
  readonly closed?: Promise<number>;
};

export function createApiRequest(path: string, options: ApiRequestOptions = {}): ApiRequest {
  const { method = 'GET', headers = {}, body, peer = '192.0.2.1', note = () => undefined } = options;
  const fields = { ...framingOf(body), ...headers };
  const head = readRequestHead({ method, url: path, rawHeaders: Object.entries(fields).flat() });
  const isStream = body instanceof ReadableStream;
  const stream = isStream ? Readable.fromWeb(body as never) : Readable.from([Buffer.from(body ?? '')]);
  return {
    head,
    body: new RequestBody(stream, { head }),
    requestId: randomUUID(),
    left: () => options.left ?? new AbortController().signal,
    draining: options.draining ?? new AbortController().signal,
    closed: options.closed ?? new Promise(() => undefined),
    connection: { authenticated: () => undefined, openStream: () => true },
    client: { host: peer, port: 40_000 },
    origin: options.origin,
    note,
  };
}

/** Also of a streamed response, which must end. */
export async function readText(response: HttpResponse): Promise<string> {
  const { body } = response;
  if (typeof body !== 'object' || !(Symbol.asyncIterator in body)) return textOf(response);
  return Buffer.concat(await Array.fromAsync(body)).toString();
}

export function textOf({ body = '' }: HttpResponse): string {
  if (typeof body === 'object' && Symbol.asyncIterator in body) throw new Error('a streamed response');
  return Buffer.from(body).toString();
}

function framingOf(body: ApiRequestOptions['body']): Readonly<Record<string, string>> {
  if (body === undefined) return {};
  if (body instanceof ReadableStream) return { 'transfer-encoding': 'chunked' };
  return { 'content-length': String(Buffer.byteLength(body)) };
}
