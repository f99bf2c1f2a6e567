// The origin of a load over HTTP/2, of node:http2: the response contains a signature of the request, and some requests ask
// for a failure. A response is checked to the last byte: the body repeats the signature.
import { createHash, createHmac } from 'node:crypto';
import {
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  constants,
  createSecureServer,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TestAuthority } from '../support/test-authority.ts';

export const ORIGIN_NAME = 'api.test' as const;
export const INJECTED: string = 'Bearer of the load';
/** The code with which the origin resets a stream; the proxy never uses it. */
export const RESET_CODE: number = constants.NGHTTP2_CONNECT_ERROR;

/** How a request ends: complete, reset before its head or in its body, refused the first time, or followed by GOAWAY. */
export type Ending = 'whole' | 'silent' | 'cut' | 'unread' | 'leave';
export type Asked = { readonly nonce: string; readonly ending: Ending; readonly size: number };

export type LoadOrigin = AsyncDisposable & {
  readonly port: number;
  /** Sessions opened so far. */
  readonly sessions: number;
};

export function pathOf({ nonce, ending, size }: Asked): string {
  return `/${ending}/${nonce}/${size}`;
}

/** The signature of a request, which only its own response may contain. */
export function sign(path: string, nonce: string, bodyHash: string, authorization: string): string {
  const said = [path, nonce, bodyHash, authorization].join('\n');
  return createHmac('sha256', 'the origin').update(said).digest('base64url');
}

export function hashOf(body: Buffer): string {
  return createHash('sha256').update(body).digest('base64url');
}

/** `onArrival` gets the path of each stream, also of refused ones. */
export async function createLoadOrigin(
  authority: TestAuthority,
  onArrival: (path: string) => void = () => undefined,
): Promise<LoadOrigin> {
  const leaf = authority.contextFor(ORIGIN_NAME);
  const server = createSecureServer({
    SNICallback: (_, done) => done(null, leaf),
    // Responses to clients that do not read wait here.
    maxSessionMemory: 1_000,
  });
  const sessions = new Set<ServerHttp2Session>();
  const refused = new Set<string>();
  let opened = 0;
  server.on('session', (session) => {
    opened += 1;
    sessions.add(session);
    session.on('error', () => undefined);
    session.once('close', () => sessions.delete(session));
  });
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    onArrival(headers[':path'] ?? '');
    void response(stream, headers, refused);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get sessions() {
      return opened;
    },
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function response(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  refused: Set<string>,
): Promise<void> {
  stream.on('error', () => undefined);
  const path = headers[':path'] ?? '';
  const nonce = String(headers['x-nonce']);
  const [, ending, , size] = path.split('/');
  if (ending === 'unread' && !refused.delete(path)) {
    refused.add(path);
    return stream.close(constants.NGHTTP2_REFUSED_STREAM);
  }
  if (ending === 'silent') return stream.close(RESET_CODE);
  const bodyHash = await readHash(stream);
  if (stream.destroyed || bodyHash === undefined) return;
  const signature = sign(path, nonce, bodyHash, headers.authorization ?? 'none');
  const body = Buffer.alloc(Number(size), signature);
  stream.respond({ 'x-signature': signature, 'content-length': body.length });
  if (ending === 'cut') {
    const half = body.subarray(0, body.length / 2);
    return void stream.write(half, () => stream.close(RESET_CODE));
  }
  stream.end(body);
  if (ending === 'leave') stream.session?.close();
}

/** Undefined when it was reset before its end. */
function readHash(stream: ServerHttp2Stream): Promise<string | undefined> {
  const hash = createHash('sha256');
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  stream.on('data', (piece: Buffer) => hash.update(piece));
  stream.once('end', () => resolve(stream.aborted ? undefined : hash.digest('base64url')));
  stream.once('close', () => resolve(undefined));
  return promise;
}
