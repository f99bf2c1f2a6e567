// Requests to the application of a deployment: bodies in both directions, errors of the application, and leaving early.
import { afterAll, describe, expect, it } from 'vitest';
import { loadApp } from '../../../src/agent-worker/app/app-method.ts';
import { WINDOW_BYTES } from '../../../src/agent-worker/protocol/credit.ts';
import type { AppRequest } from '../../../src/agent-worker/protocol/calls.ts';
import { type ServedWorker, servedWorker } from '../../support/agent-worker/served-worker.ts';
import { createScratch } from '../../support/scratch.ts';

const scratch = await createScratch();
afterAll(() => scratch[Symbol.asyncDispose]());

async function serveApp(source: string): Promise<ServedWorker> {
  const file = await scratch.write(`${crypto.randomUUID()}.mjs`, source);
  return servedWorker({ app: await loadApp({ file, name: 'app', source: './app.ts:app' }) });
}

function begin(worker: ServedWorker, request: Partial<AppRequest>): void {
  const params = { method: 'GET', url: 'http://a.test/x?y=1', headers: [], hasBody: false, ...request };
  worker.send({ type: 'call', id: 1, method: 'http.request', params });
}

async function readBody(worker: ServedWorker): Promise<string> {
  let text = '';
  for (;;) {
    const message = await worker.next();
    if (message.type !== 'data') throw new Error(`a message ${message.type}`);
    text += Buffer.from(message.base64, 'base64').toString();
    if (message.isLast === true) return text;
  }
}

describe('an application', () => {
  it('gets the request, and its response comes with every field', async () => {
    await using worker = await serveApp(`
      class App {
        prefix = 'got ';
        async fetch(request) {
          const text = this.prefix + request.method + ' ' + request.url + ' ' + request.headers.get('x-a') + ' ' + await request.text();
          return new Response(text, { status: 201, headers: [['set-cookie', 'a=1'], ['set-cookie', 'b=2'], ['x-b', 'c']] });
        }
      }
      export const app = new App();`);
    begin(worker, { method: 'POST', headers: [['x-a', '1']], hasBody: true });
    worker.send({ type: 'data', id: 1, base64: Buffer.from('he').toString('base64') });
    worker.send({ type: 'data', id: 1, base64: Buffer.from('llo').toString('base64'), isLast: true });
    const head = await worker.next();
    expect(head).toMatchObject({ type: 'result', id: 1, value: { status: 201 } });
    expect((head as { readonly value?: unknown }).value).toMatchObject({
      headers: expect.arrayContaining([
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
        ['x-b', 'c'],
      ]),
    });
    expect(await readBody(worker)).toBe('got POST http://a.test/x?y=1 1 hello');
  });

  it('may be a function, and its response without a body', async () => {
    await using worker = await serveApp('export const app = () => new Response(null, { status: 204 });');
    begin(worker, {});
    expect(await worker.next()).toMatchObject({ type: 'result', value: { status: 204, headers: [] } });
    expect(await readBody(worker)).toBe('');
  });

  it('reads no more than it asks for', async () => {
    await using worker = await serveApp(`
      export const app = { fetch: async (request) => {
        const reader = request.body.getReader();
        await reader.read();
        return new Response('done');
      } };`);
    begin(worker, { method: 'POST', hasBody: true });
    const base64 = Buffer.alloc(WINDOW_BYTES / 8).toString('base64');
    for (let piece = 0; piece < 6; piece += 1) worker.send({ type: 'data', id: 1, base64 });
    expect(await worker.next()).toMatchObject({ type: 'result' });
    expect(worker.waiting.filter(({ type }) => type === 'credit').length).toBeLessThan(2);
  });

  it('writes no more than it is granted', async () => {
    await using worker = await serveApp(`
      const piece = new Uint8Array(100_000);
      let count = 0;
      export const app = () => new Response(new ReadableStream({ pull(controller) {
        count += 1;
        if (count > 20) controller.close(); else controller.enqueue(piece);
      } }));`);
    begin(worker, {});
    expect(await worker.next()).toMatchObject({ type: 'result' });
    let bytes = 0;
    let unused = 0;
    for (;;) {
      const message = await worker.next();
      if (message.type !== 'data') throw new Error(message.type);
      bytes += Buffer.from(message.base64, 'base64').length;
      if (message.isLast === true) break;
      unused += Buffer.byteLength(JSON.stringify(message));
      expect(unused).toBeLessThan(WINDOW_BYTES + 100_000);
      if (unused < WINDOW_BYTES) continue;
      worker.send({ type: 'credit', id: 1, bytes: unused });
      unused = 0;
    }
    expect(bytes).toBe(2_000_000);
  });

  it('is aborted when the client has left, and its stream is ended', async () => {
    await using worker = await serveApp(`
      export const app = (request) => new Response(new ReadableStream({
        start(controller) {
          controller.enqueue(new Uint8Array([120]));
          request.signal.addEventListener('abort', () => controller.error(new Error('aborted')));
        },
      }));`);
    begin(worker, {});
    expect(await worker.next()).toMatchObject({ type: 'result' });
    expect(await worker.next()).toMatchObject({ type: 'data', base64: 'eA==' });
    worker.send({ type: 'cancel', id: 1, reason: 'lost' });
    expect(await worker.next()).toMatchObject({
      type: 'error',
      error: { kind: 'cancelled', reason: 'lost' },
    });
  });

  it.each([
    ['throws', "() => { throw new TypeError('no'); }", { error: 'TypeError', message: 'no' }],
    ['returns no response', '() => 1', { message: 'the application did not return a Response' }],
    ['has a stream that fails', "() => { throw new Error('x'); }", { error: 'Error', message: 'x' }],
  ])('that %s is reported', async (_, code, error) => {
    await using worker = await serveApp(`export const app = ${code};`);
    begin(worker, {});
    expect(await worker.next()).toMatchObject({ type: 'error', error: { kind: 'thrown', ...error } });
  });
});

describe('what cannot be loaded', () => {
  it.each([
    ['export const app = 1;', './app.ts:app is no application'],
    ['export const app = { fetch: 1 };', './app.ts:app is no application'],
    ['export const other = 1;', './app.ts:app has no export app'],
    ["throw new Error('at load');", './app.ts:app cannot be loaded: at load'],
  ])('%s', async (source, message) => {
    await expect(serveApp(source)).rejects.toMatchObject({
      name: 'LoadError',
      key: 'http.app',
      message: expect.stringContaining(message),
    });
  });
});
