// The application of a deployment behind the listener: bodies in both directions, who is let in, and clients that leave.
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DomainError } from '../../../../src/base/domain-error.ts';
import { createLog } from '../../../../src/base/log.ts';
import { createAppFallback } from '../../../../src/platform/agent-server/app/app-fallback.ts';
import { anyone } from '../../../../src/platform/api/access.ts';
import { noProxies } from '../../../../src/platform/api/client-address.ts';
import { toErrorResponse } from '../../../../src/platform/api/errors.ts';
import { serveFallback } from '../../../../src/platform/api/contract/fallback.ts';
import { defaultLimits } from '../../../../src/platform/api/limits.ts';
import { openServer, type Server } from '../../../../src/platform/api/server.ts';
import { startTestWorkers, type TestWorkers } from '../../../support/agent-worker/test-workers.ts';
import { createScratch } from '../../../support/scratch.ts';

const APP = `
export const app = { async fetch(request) {
  const { pathname } = new URL(request.url);
  if (pathname === '/echo')
    return new Response(request.body, { status: 201, headers: [['set-cookie', 'a=1'], ['set-cookie', 'b=2'], ['x-method', request.method], ['x-user', request.headers.get('authorization') ?? '']] });
  if (pathname === '/nothing') return new Response(null, { status: 204 });
  if (pathname === '/throws') throw new Error('sk-secret');
  if (pathname === '/endless') {
    request.signal.addEventListener('abort', () => console.log('client has left'));
    return new Response(new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('begun')) }));
  }
  return new Response('no such page', { status: 404 });
} };`;

const scratch = await createScratch();
let workers: TestWorkers;
let server: Server;
let isLetIn = true;

beforeAll(async () => {
  const file = await scratch.write('app.mjs', APP);
  const app = { file, name: 'app', source: './app.ts:app' };
  workers = await startTestWorkers({}, { load: { root: '/', graphs: {}, app } });
  const fallback = createAppFallback(workers, anyone);
  server = await openServer({
    api: (request) =>
      serveFallback({ ...fallback, cors: { origins: ['https://app.example.com'] } }, request, {
        async enter() {
          if (!isLetIn) throw new DomainError('unauthenticated', 'no');
        },
        toResponse: (error) => toErrorResponse(error) ?? { status: 500 },
      }),
    listen: { host: '127.0.0.1', port: 0 },
    limits: { ...defaultLimits, drainMs: 0 },
    trustedProxies: noProxies,
    log: createLog('silent', { write: () => undefined }),
    onFinished: () => undefined,
  });
});
afterAll(async () => {
  await server?.close();
  await workers?.close();
  await scratch[Symbol.asyncDispose]();
});

it('relays a request and its response, both as streams', async () => {
  const sent = httpRequest(`${server.url}/echo`, { method: 'PUT', headers: { authorization: 'Bearer t' } });
  sent.write('first ');
  const [response] = await once(sent, 'response');
  expect(response.statusCode).toBe(201);
  expect(response.headers).toMatchObject({
    'set-cookie': ['a=1', 'b=2'],
    'x-method': 'PUT',
    'x-user': 'Bearer t',
  });
  const [first] = await once(response, 'data');
  // The request goes on when its response has begun.
  const large = 'x'.repeat(3_000_000);
  sent.end(large);
  const rest = await Array.fromAsync(response as AsyncIterable<Buffer>);
  expect(Buffer.concat([first, ...rest]).toString()).toBe(`first ${large}`);
});

it.each([
  ['/nothing', 204, ''],
  ['/other', 404, 'no such page'],
])('%s', async (path, status, text) => {
  const response = await fetch(`${server.url}${path}`);
  expect([response.status, await response.text()]).toEqual([status, text]);
});

it('sends no body for HEAD', async () => {
  const response = await fetch(`${server.url}/other`, { method: 'HEAD' });
  expect([response.status, await response.text()]).toEqual([404, '']);
});

it('does not show what the application threw', async () => {
  const response = await fetch(`${server.url}/throws`);
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('sk-secret');
});

it('ends the request in the application when the client has left', async () => {
  const controller = new AbortController();
  const response = await fetch(`${server.url}/endless`, { signal: controller.signal });
  const { value } = (await response.body?.getReader().read()) ?? {};
  expect(Buffer.from(value ?? []).toString()).toBe('begun');
  controller.abort();
  await workers.logged(/client has left/);
});

it('responds to a preflight, which has no credentials, before it asks who calls', async () => {
  isLetIn = false;
  const ask = (origin: string) =>
    fetch(`${server.url}/echo`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'PUT' },
    });
  const [own, other] = [await ask('https://app.example.com'), await ask('https://example.com')];
  isLetIn = true;
  expect([own.status, own.headers.get('access-control-allow-methods'), other.status]).toEqual([
    204,
    'PUT',
    401,
  ]);
});

it('asks nothing of a worker for who is not let in', async () => {
  isLetIn = false;
  const response = await fetch(`${server.url}/echo`);
  isLetIn = true;
  expect(response.status).toBe(401);
});
