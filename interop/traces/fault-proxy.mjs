// A proxy on loopback between a client and a platform. It notes each request with runs, and fails those that a plan names: with a
// status, by cutting the connection before, within or after the body, or by whatever a test does meanwhile, such as a kill.
import { once } from 'node:events';
import { createServer, request as connect } from 'node:http';
import { text } from 'node:stream/consumers';

/** @typedef {{ status?: number, fields?: Record<string, string>, cut?: 'head' | 'body' | 'response', during?: () => void }} Fault */

const INGESTION = /\/runs(?:\/batch|\/multipart)?$/;

const isIngestion = ({ method, url }) =>
  method === 'PATCH' ? /\/runs\/[0-9a-f-]{36}$/.test(url) : method === 'POST' && INGESTION.test(url);

/**
 * `faultOf(path, nth)` is asked for each request with runs; undefined relays it. `changeInfo` changes what `/info` says.
 */
export async function startFaultProxy(target, { faultOf = () => undefined, changeInfo } = {}) {
  const requests = [];
  /** Paths of other requests that write. */
  const others = [];
  const server = createServer((request, response) => {
    const reply = async () => {
      if (request.url.endsWith('/info') && changeInfo !== undefined)
        return respondWithInfo(target, changeInfo, response);
      if (!isIngestion(request)) {
        if (request.method !== 'GET') others.push(new URL(request.url, target).pathname);
        return relay(target, request, response);
      }
      const path = request.url.replace(/^\/api(?:\/v1)?(?=\/)/, '');
      const fault = faultOf(path, requests.length);
      const noted = {
        method: request.method,
        path: path.replace(/[0-9a-f-]{36}$/, '{id}'),
        encoding: request.headers['content-encoding'] ?? 'identity',
        isChunked: request.headers['transfer-encoding'] === 'chunked',
        fault: fault?.cut ?? fault?.status,
      };
      requests.push(noted);
      noted.status = await serve(target, request, response, fault);
    };
    reply().catch(() => request.socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    others,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function serve(target, request, response, fault) {
  if (fault === undefined) return relay(target, request, response);
  if (fault.status !== undefined) return refuse(request, response, fault);
  if (fault.cut === 'body') await relayPart(target, request);
  if (fault.cut === 'response') await relayToResponse(target, request);
  fault.during?.();
  request.socket.destroy();
  return undefined;
}

async function refuse(request, response, { status, fields = {} }) {
  request.resume();
  await once(request, 'end');
  response.writeHead(status, { 'content-type': 'application/json', ...fields });
  response.end(JSON.stringify({ error: 'a fault of the test', details: '' }));
  return status;
}

async function respondWithInfo(target, changeInfo, response) {
  const info = await (await fetch(`${target}/info`)).json();
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(changeInfo(info)));
}

/** Each on a connection of its own: one that is kept could belong to a platform that was killed. */
function open(target, { method, url, headers }) {
  const { hostname, port } = new URL(target);
  return connect({ hostname, port, method, path: url, headers, agent: false });
}

async function relay(target, request, response) {
  const upstream = open(target, request);
  request.pipe(upstream);
  request.on('close', () => request.complete || upstream.destroy());
  const [reply] = await once(upstream, 'response');
  response.writeHead(reply.statusCode, reply.headers);
  reply.pipe(response);
  reply.on('error', () => response.destroy());
  return reply.statusCode;
}

/** Up to half of what was promised or has come, so that the platform has begun to read. */
async function relayPart(target, request) {
  const upstream = open(target, request);
  upstream.on('error', () => undefined);
  const [first] = await once(request, 'data');
  await new Promise((resolve) => upstream.write(first.subarray(0, Math.ceil(first.length / 2)), resolve));
  upstream.destroy();
}

/** The platform has stored the runs, and the client never learns it. */
async function relayToResponse(target, request) {
  const upstream = open(target, request);
  request.pipe(upstream);
  const [reply] = await once(upstream, 'response');
  await text(reply);
}
