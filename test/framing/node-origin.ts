// An origin of node:http that records what it read of each request, in order, and always responds 200 without a body.
// It checks nothing: it is the second reader of what the proxy sends.
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TestAuthority } from '../support/test-authority.ts';
import type { Read } from './decided.ts';

export type NodeOrigin = AsyncDisposable & {
  readonly port: number;
  /** What was read since the last call, once nothing is under way any more. */
  taken(): Promise<readonly Read[]>;
  /** What node refused to read, in its words. */
  readonly errors: readonly string[];
};

export async function createNodeOrigin(tls: TestAuthority | undefined): Promise<NodeOrigin> {
  let reads: Read[] = [];
  const errors: string[] = [];
  const sockets = new Set<Socket>();
  const underWay = new Set<Promise<void>>();
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const { promise, resolve } = Promise.withResolvers<void>();
    underWay.add(promise);
    reads.push(noteRead(request, response));
    request.on('close', () => {
      underWay.delete(promise);
      resolve();
    });
  };
  const server: Server = tls
    ? createSecureServer({ SNICallback: (name, done) => done(null, tls.contextFor(name)) }, serve)
    : createServer(serve);
  // Longer than the proxy's idle timeout, so that this origin never closes a connection first.
  Object.assign(server, { keepAliveTimeout: 120_000, headersTimeout: 0, requestTimeout: 0 });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code !== 'ECONNRESET') errors.push(error.code ?? error.message);
    socket.destroy();
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    errors,
    async taken() {
      await turns();
      while (underWay.size > 0) await Promise.race(underWay);
      const taken = reads;
      reads = [];
      return taken;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function noteRead(request: IncomingMessage, response: ServerResponse): Read {
  const { method = '', url: target = '', rawHeaders: fields } = request;
  const read: Read = { method, target, fields, body: '', isComplete: false };
  request.setEncoding('latin1');
  request.on('data', (piece: string) => {
    read.body += piece;
  });
  request.on('end', () => {
    read.isComplete = request.complete;
    response.writeHead(200, { 'Content-Length': 0 }).end();
  });
  request.on('error', () => undefined);
  return read;
}

/** Turns of the event loop in which what lies in a socket of this process is read. */
async function turns(): Promise<void> {
  for (let i = 0; i < 4; i += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}
