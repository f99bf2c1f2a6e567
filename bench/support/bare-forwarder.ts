// The floor to measure against: the same interception (CONNECT, TLS with one leaf, one header injected) on plain
// node:http and a keep-alive https agent, with no policy, no record and no strictness of its own.
import { readFileSync } from 'node:fs';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket, createSecureContext } from 'node:tls';

const [certFile = '', keyFile = '', caFile = '', originPort = ''] = process.argv.slice(2);
const secureContext = createSecureContext({ cert: readFileSync(certFile), key: readFileSync(keyFile) });
const agent = new Agent({ keepAlive: true, maxSockets: 256, ca: readFileSync(caFile) });

function forward(request: IncomingMessage, response: ServerResponse): void {
  const outgoing = httpsRequest(
    {
      agent,
      host: '127.0.0.1',
      port: Number(originPort),
      servername: 'api.localhost',
      method: request.method,
      path: request.url,
      headers: { ...request.headers, authorization: 'Bearer bench-secret-value' },
    },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(response);
    },
  );
  outgoing.on('error', () => response.destroy());
  request.pipe(outgoing);
}

const inner = createServer({ keepAliveTimeout: 60_000 }, forward);
const outer = createServer();
outer.on('connect', (_request, socket) => {
  socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
  const secure = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: ['http/1.1'] });
  secure.on('error', () => secure.destroy());
  inner.emit('connection', secure);
});
outer.listen(0, '127.0.0.1', () =>
  console.log(JSON.stringify({ port: (outer.address() as AddressInfo).port })),
);
