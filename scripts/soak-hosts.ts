// The hosts behind the proxy in a soak: a host with TLS and in plaintext that responds only to requests with the expected
// credential and supports WebSocket, and a callback. They store nothing, so that they can serve for days.
import { type RequestListener, type Server, createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import type { TestAuthority } from '../test/support/test-authority.ts';

export const SECRET = 'canary-of-the-soak-5d41402a';
export const CALLED = 'canary-of-the-callback-7d793037';

export type SoakHosts = AsyncDisposable & {
  readonly securePort: number;
  readonly clearPort: number;
  readonly callbackUrl: string;
  /** How often the callback was called. */
  readonly calls: number;
};

export async function createSoakHosts(authority: TestAuthority): Promise<SoakHosts> {
  let calls = 0;
  const options = { keepAliveTimeout: 10_000, headersTimeout: 0, requestTimeout: 0 };
  const secure = createSecureServer(
    { ...options, SNICallback: (name, done) => done(null, authority.contextFor(name)) },
    response,
  );
  const clear = createServer(options, response);
  const callback = createServer(options, (request, response) => {
    calls += 1;
    request.resume().on('end', () => {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ headers: { 'X-Called': CALLED } }));
    });
  });
  const sockets = new WebSocketServer({ noServer: true });
  secure.on('upgrade', (request, socket, head) => {
    // A client may disconnect before its response.
    socket.on('error', () => socket.destroy());
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const { authorization } = request.headers;
      webSocket.on('error', () => webSocket.terminate());
      webSocket.on('message', (message: Buffer) =>
        webSocket.send(authorization === `Bearer ${SECRET}` ? `${message.toString()}` : 'no credential'),
      );
    });
  });
  const servers = [secure, clear, callback];
  const [securePort = 0, clearPort = 0, callbackPort = 0] = await Promise.all(servers.map(listen));
  return {
    securePort,
    clearPort,
    callbackUrl: `http://127.0.0.1:${callbackPort}/`,
    get calls() {
      return calls;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets.clients) socket.terminate();
      for (const server of servers) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

/** Responds with the received credential, so that a missing or a wrong one is detected. */
const response: RequestListener = (request, response) => {
  request.on('error', () => response.destroy());
  request.resume().on('end', () => {
    const {
      authorization = 'none',
      'x-called': called = 'none',
      'x-nonce': nonce = 'none',
    } = request.headers;
    const kind = authorization === `Bearer ${SECRET}` ? 'injected' : called === CALLED ? 'called' : 'plain';
    response.end(`${kind} ${String(nonce)}`);
  });
};

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
