// Bodies of more than 20 MiB, by the routes of the agent server over a real listener: 413 before anything is written, whether their length
// is announced or they are streamed.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { Api } from '../../../src/platform/api/api-request.ts';
import { noProxies } from '../../../src/platform/api/client-address.ts';
import { defaultLimits } from '../../../src/platform/api/limits.ts';
import { openServer, type Server } from '../../../src/platform/api/server.ts';
import { createAssistantRoutes } from '../../../src/platform/agent-server/assistants/assistant-routes.ts';
import { createThreadRoutes } from '../../../src/platform/agent-server/threads/thread-routes.ts';
import { type AgentApi, createAgentApi } from '../../support/agent-api.ts';
import { openGate } from '../../support/agent-gate.ts';
import { WireClient } from '../../support/wire-client.ts';
import { createRunsScene, type RunsScene } from './runs/runs-scene.ts';

const MAX_BYTES = 20 * 1024 * 1024;
const id = randomUUID();

let agent: AgentApi;
let runs: RunsScene;
const servers: Server[] = [];
const ports = new Map<string, number>();

beforeAll(async () => {
  agent = await createAgentApi((parts) => [...createAssistantRoutes(parts), ...createThreadRoutes(parts)]);
  runs = await createRunsScene(openGate());
  ports.set('others', await open(agent.api));
  ports.set('runs', await open(runs.api));
});
afterAll(async () => {
  for (const server of servers) await server.close();
  await runs?.[Symbol.asyncDispose]();
  await agent?.[Symbol.asyncDispose]();
});

async function open(api: Api): Promise<number> {
  const server = await openServer({
    ...{ api, listen: { host: '127.0.0.1', port: 0 }, limits: defaultLimits, trustedProxies: noProxies },
    log: createLog('error', { write: () => undefined }),
    onFinished: () => undefined,
  });
  servers.push(server);
  return Number(new URL(server.url).port);
}

const portOf = (path: string): number => ports.get(path.includes('/runs') ? 'runs' : 'others') ?? 0;
const headOf = (method: string, path: string, framing: string): string =>
  `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`;
const TOO_LARGE = { code: 'too_large', detail: 'The request body is too large' };

describe.each([
  ['POST', '/assistants'],
  ['PATCH', `/assistants/${id}`],
  ['POST', '/assistants/search'],
  ['POST', '/threads'],
  ['PATCH', `/threads/${id}`],
  ['POST', '/threads/search'],
  ['POST', `/threads/${id}/state`],
  ['POST', `/threads/${id}/runs`],
  ['POST', `/threads/${id}/runs/stream`],
  ['POST', `/threads/${id}/runs/wait`],
  ['POST', '/runs'],
  ['POST', '/runs/stream'],
  ['POST', '/runs/wait'],
])('%s %s', (method, path) => {
  it('whose length says so: 413, and no byte of the body is awaited', async () => {
    await using client = await WireClient.connect(portOf(path));
    await client.send(headOf(method, path, `Content-Length: ${MAX_BYTES + 1}`));
    const { head, text } = await client.readResponse();
    expect([head.status, JSON.parse(text)]).toEqual([413, TOO_LARGE]);
  });
});

it.each(['/assistants', `/threads/${id}/runs`])(
  'POST %s that is streamed beyond the limit: 413, and nothing is written',
  async (path) => {
    await using client = await WireClient.connect(portOf(path));
    await client.send(headOf('POST', path, 'Transfer-Encoding: chunked'));
    const piece = 'x'.repeat(1024 * 1024);
    const text = `{"graph_id":"agent","assistant_id":"agent","metadata":{"a":"`;
    const send = (data: string) => client.send(`${data.length.toString(16)}\r\n${data}\r\n`);
    await send(text);
    for (let sent = 0; sent < 20; sent += 1) await send(piece);
    const response = await client.readResponse();
    expect([response.head.status, JSON.parse(response.text)]).toEqual([413, TOO_LARGE]);
    for (const { store } of [agent.database, runs.database]) {
      const rows = store.db
        .selectFrom('agent_threads')
        .select('thread_id')
        .union(store.db.selectFrom('agent_assistant_versions').select('assistant_id as thread_id'));
      expect(await rows.execute()).toEqual([]);
    }
  },
);
