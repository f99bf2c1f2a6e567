// The program of workers with a real graph: loaded from the deployment, run with checkpoints of the server, and what it reports
// when the deployment cannot be loaded.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import '../../src/agent-worker/load-deployment.ts';
import type { WorkerEvent } from '../../src/agent-worker/protocol/messages.ts';
import { createLog } from '../../src/base/log.ts';
import { startGraphWorkers } from '../../src/platform/agent-server/workers/started-workers.ts';
import { defaultWorkerLimits } from '../../src/platform/agent-server/workers/worker-limits.ts';
import { testRun } from '../support/agent-worker/test-workers.ts';
import { createScratch } from '../support/scratch.ts';

const root = join(import.meta.dirname, '../..');

async function start(source: string, app?: string) {
  const scratch = await createScratch();
  const modules = join(root, 'node_modules/@langchain/langgraph/dist/index.js');
  const file = await scratch.write(
    'graph.mjs',
    source.replace("'@langchain/langgraph'", `'file://${modules}'`),
  );
  const appFile = await scratch.write('app.mjs', app ?? '');
  const lines: string[] = [];
  const workers = await startGraphWorkers({
    deployment: {
      root,
      env: { NAME: 'deployment' },
      load: {
        root,
        graphs: { agent: { file, name: 'graph', source: './graph.mjs:graph' } },
        ...(app !== undefined && { app: { file: appFile, name: 'app', source: './app.mjs:app' } }),
      },
    },
    limits: { ...defaultWorkerLimits, workers: 1 },
    log: createLog('info', { write: (line) => void lines.push(line) }),
  });
  return {
    workers,
    lines,
    async [Symbol.asyncDispose]() {
      await workers.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const GRAPH = `
import { Annotation, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ text: Annotation() });
export const graph = new StateGraph(State)
  .addNode('greet', ({ text }) => ({ text: text + ' ' + process.env.NAME }))
  .addEdge('__start__', 'greet')
  .compile();`;

it('writes nothing of what an error has that nobody caught', { tags: 'long' }, async () => {
  const app = `const error = () => Object.assign(new TypeError('Bearer sk-user'), { request: 'sk-user' });
    const later = () => new Promise(setImmediate);
    export const app = { async fetch(request) {
      if (request.method === 'GET') { Promise.reject(error()); await later(); return new Response('left'); }
      setImmediate(() => { throw error(); });
      await new Promise(() => undefined);
    } };`;
  await using started = await start(GRAPH, app);
  const { workers, lines } = started;
  const ask = (method: string) =>
    workers.request({ method, url: 'http://a.test/', headers: [], hasBody: false }, undefined, {
      signal: new AbortController().signal,
    });
  expect((await ask('GET')).status).toBe(200);
  await expect(ask('POST')).rejects.toMatchObject({ kind: 'lost' });
  await workers.close();
  expect(lines.join('')).toContain('unhandled rejection: TypeError at ');
  expect(lines.join('')).toContain('uncaught exception: TypeError at ');
  expect(lines.join('')).not.toContain('sk-user');
});

it('runs a graph, whose checkpoints go to the server, and serves the application beside it', async () => {
  await using started = await start(GRAPH, 'export const app = { fetch: () => new Response("hello") };');
  const { workers } = started;
  expect(workers.loaded).toMatchObject({
    library: expect.stringMatching(/^1\./),
    hasAuth: false,
    hasApp: true,
  });
  const methods: string[] = [];
  const events: WorkerEvent[] = [];
  const checkpoints = {
    async handle(method: string): Promise<never> {
      methods.push(method);
      return (method === 'checkpoint.list' ? [] : null) as never;
    },
  };
  const onEvents = async (batch: readonly WorkerEvent[]): Promise<void> => void events.push(...batch);
  const [run, options] = testRun('', { checkpoints, onEvents });
  const config = JSON.stringify({ configurable: { thread_id: 't' } });
  const input = JSON.stringify({ text: 'hello' });
  const end = await workers.run(
    { ...run, graph_id: 'agent', input, config, stream_mode: ['updates'] },
    options,
  );
  expect(end).toMatchObject({ status: 'success', values: '{"text":"hello deployment"}' });
  expect(events).toMatchObject([{ event: 'updates', data: '{"greet":{"text":"hello deployment"}}' }]);
  expect(methods).toContain('checkpoint.put_all');

  const request = { method: 'GET', url: 'http://a.test/', headers: [], hasBody: false };
  const { status, body } = await workers.request(request, undefined, {
    signal: new AbortController().signal,
  });
  expect([status, Buffer.concat(await Array.fromAsync(body)).toString()]).toEqual([200, 'hello']);
});

it.each([
  ['export const other = 1;', 'graphs.agent'],
  ["throw new Error('at load');", 'graphs.agent'],
])('%s: the key to correct', { tags: 'long' }, async (source, key) => {
  await expect(start(source)).rejects.toMatchObject({ name: 'WorkerStartError', failure: { key } });
});
