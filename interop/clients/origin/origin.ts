// The origin of the suite: HTTP/1.1 and HTTP/2 by ALPN on port 443. It dispatches on the host, gives 401 to a request without
// the credential of its host, and enters every request.
import { mkdirSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import {
  createSecureServer,
  type Http2SecureServer,
  Http2ServerRequest,
  Http2ServerResponse,
} from 'node:http2';
import { join } from 'node:path';
import type { Socket } from 'node:net';
import { WebSocketServer } from 'ws';
import type { TestAuthority } from '../../../test/support/test-authority.ts';
import { respondAsApi } from './api-responses.ts';
import { createRepository, respondAsGit } from './git-repository.ts';
import { respondAsGrpc } from './grpc-responses.ts';
import { createObjectStore } from './object-store.ts';
import { type OriginRequest, type OriginResponse, send, sendJson } from './origin-response.ts';
import { createRegistries, respondAsNpm, respondWithFile } from './package-registries.ts';
import type { RequestLedger } from './request-ledger.ts';

type Respond = (request: OriginRequest, response: OriginResponse) => void | Promise<void>;

export async function startOrigin(options: {
  readonly address: string;
  readonly authority: TestAuthority;
  readonly ledger: RequestLedger;
  /** For the repository and the packages. */
  readonly folder: string;
  readonly names: readonly string[];
}): Promise<Http2SecureServer> {
  const { address, authority, ledger, folder, names } = options;
  mkdirSync(folder, { recursive: true });
  createRepository(folder);
  createRegistries(folder);
  const responders = respondersOf(folder);
  const server = createSecureServer({
    allowHTTP1: true,
    SNICallback: (name, done) =>
      done(null, authority.contextFor(names.includes(name) ? name : (names[0] ?? ''))),
  });
  server.on('request', (request, response) => {
    const host = hostOf(request);
    const isRight = enter(ledger, host, request);
    response.on('error', () => undefined);
    respond(responders[host], isRight, request, response).catch((error: unknown) => {
      console.error(`the origin failed at ${host}${request.url}:`, error);
      response.stream?.destroy();
      if (!(response instanceof Http2ServerResponse)) request.socket.destroy();
    });
  });
  serveWebSockets(server, ledger);
  // A client that does not trust the certificate, or leaves.
  server.on('sessionError', () => undefined);
  server.listen(443, address);
  await new Promise<void>((resolve, reject) => {
    server.once('listening', resolve);
    server.once('error', reject);
  });
  return server;
}

function respondersOf(folder: string): Readonly<Record<string, Respond>> {
  const files =
    (name: string): Respond =>
    (request, response) =>
      respondWithFile(join(folder, name), request, response);
  return {
    'api.test': respondAsApi,
    's3.test': createObjectStore(),
    'git.test': (request, response) => respondAsGit(folder, request, response),
    'npm.test': (request, response) => respondAsNpm(folder, request, response),
    'pypi.test': files('pypi'),
    'crates.test': files('crates'),
    'goproxy.test': files('goproxy'),
    'maven.test': files('maven'),
    'apt.test': files('apt'),
    'github.test': (_, response) => sendJson(response, 200, { login: 'agent', id: 1 }),
    'grpc.test': (request, response) =>
      request instanceof Http2ServerRequest && response instanceof Http2ServerResponse
        ? respondAsGrpc(request, response)
        : send(response, 505, 'gRPC needs HTTP/2\n'),
  };
}

async function respond(
  responder: Respond | undefined,
  isRight: boolean,
  request: OriginRequest,
  response: OriginResponse,
): Promise<void> {
  if (isRight && responder !== undefined) return responder(request, response);
  request.resume();
  send(response, isRight ? 404 : 401, 'no credential\n', { 'www-authenticate': 'Basic realm="origin"' });
}

function hostOf(request: OriginRequest): string {
  const authority = request.headers[':authority'] ?? request.headers.host ?? '';
  return String(authority).replace(/:\d+$/, '').toLowerCase();
}

function enter(ledger: RequestLedger, host: string, request: OriginRequest): boolean {
  const { httpVersion, headers } = request;
  return ledger.enter({ host, path: request.url ?? '', httpVersion, headers });
}

function serveWebSockets(server: Http2SecureServer, ledger: RequestLedger): void {
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    if (!enter(ledger, hostOf(request), request))
      return socket.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n');
    sockets.handleUpgrade(request, socket, head, (webSocket) =>
      webSocket.on('message', (data, isBinary) => webSocket.send(data, { binary: isBinary })),
    );
  });
}
