// An agent server as an instance of a deployment: what it was given on its descriptor reaches workers and database, and no place that
// other programs can read; its gateway lets callers in; after a drain it ends at once, and its runs go on elsewhere.
import { randomBytes } from 'node:crypto';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { AgentInput, AgentStatus } from '../../../src/platform/agent-server/contract.ts';
import { startAgentServer, writeDeployment } from '../../support/agent-process.ts';
import { createTestDatabase } from '../../support/platform-database.ts';
import { createScratch } from '../../support/scratch.ts';
import { askAtSocket } from '../../support/socket-request.ts';

const GRAPH = `
import { Annotation, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ waits: Annotation(), seen: Annotation() });
export const graph = new StateGraph(State)
  .addNode('look', async ({ waits }, { configurable }) => {
    if (waits) await new Promise((resolve) => setTimeout(resolve, 600_000));
    const { A, B, CANARY, LANGSMITH_HOST_REVISION_ID, MOUNT_PREFIX, DATABASE_URL, SALLYPORT_AGENT_INPUT } = process.env;
    return { seen: {
      A, B, length: CANARY.length, revision: LANGSMITH_HOST_REVISION_ID, prefix: MOUNT_PREFIX,
      own: DATABASE_URL ?? SALLYPORT_AGENT_INPUT ?? null, user: configurable.langgraph_auth_user_id,
      fields: Object.keys(configurable).filter((name) => name.startsWith('x-')),
    } };
  })
  .addEdge('__start__', 'look')
  .compile();
`;

const CANARY = 'a-canary-that-must-stay-secret-91c2';
const ids = {
  id: '6b1c0b86-7a2f-4a57-8f0e-5d7a0c1c9f11',
  revisionId: '6b1c0b86-7a2f-4a57-8f0e-5d7a0c1c9f12',
};
const gatewayToken = randomBytes(32).toString('base64url');
const masterKey = randomBytes(32).toString('base64');
const GATEWAY = { 'x-sallyport-gateway-token': gatewayToken };
const ADA = { ...GATEWAY, 'x-sallyport-caller': 'ada', 'x-sallyport-caller-key': 'key' };
const RUNNER = { 'x-sallyport-control-token': gatewayToken };

it('serves by what its descriptor says', { tags: 'long' }, async () => {
  await using database = await createTestDatabase();
  await using scratch = await createScratch();
  const config = await writeDeployment(
    join(scratch.path, 'source'),
    // The file is left out of an upload.
    { graphs: { agent: './graph.js:graph' }, env: '.env', http: { mount_prefix: '/agents' } },
    { 'graph.js': GRAPH, 'package.json': '{"type": "module"}' },
  );
  const input: AgentInput = {
    variables: { A: '1', CANARY, N_JOBS_PER_WORKER: '3' },
    databaseUrl: database.url,
    masterKey,
    deployment: { ...ids, name: 'app', gatewayToken, access: 'gateway', mountPrefix: '/d/app' },
  };
  const dataDirectory = join(scratch.path, 'state');
  const socketPath = join(scratch.path, 'api.sock');
  const start = () =>
    startAgentServer(config, { dataDirectory, instance: { socketPath, input: JSON.stringify(input) } });
  await using server = start();
  await server.ready;
  const ask = (path: string, given: Parameters<typeof askAtSocket>[2] = {}) =>
    askAtSocket(socketPath, path, given);
  const statusOf = async (): Promise<AgentStatus> =>
    JSON.parse((await ask('/internal/status?check_db=1', { headers: RUNNER })).text);

  expect((await ask('/agents/threads', { method: 'POST', body: {} })).status).toBe(401);
  const preflight = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' };
  expect((await ask('/agents/threads', { method: 'OPTIONS', headers: preflight })).status).toBe(204);
  const run = { assistant_id: 'agent', input: { waits: false } };
  const waited = await ask('/agents/runs/wait', { method: 'POST', headers: ADA, body: run });
  expect(JSON.parse(waited.text)).toMatchObject({
    seen: {
      ...{ A: '1', length: CANARY.length, revision: ids.revisionId, prefix: '/d/app', own: null },
      ...{ user: 'ada', fields: [] },
    },
  });
  expect(JSON.parse((await ask('/agents/info')).text)).toMatchObject({
    host: { project_id: ids.id, revision_id: ids.revisionId, deployment_name: 'app' },
  });
  const description = await ask('/agents/openapi.json', { headers: ADA });
  expect(Object.keys(JSON.parse(description.text).paths).filter((path) => path.includes('internal'))).toEqual(
    [],
  );

  const thread = JSON.parse(
    (await ask('/agents/threads', { method: 'POST', headers: ADA, body: {} })).text,
  ).thread_id;
  const waiting = { assistant_id: 'agent', input: { waits: true } };
  const created = await ask(`/agents/threads/${thread}/runs`, {
    ...{ method: 'POST', headers: ADA, body: waiting },
  });
  const { run_id: runId } = JSON.parse(created.text);
  expect(await statusOf()).toEqual({ draining: false, requests: 0, streams: 0, runs: 1 });
  await expectNoSecrets({ pid: server.process.pid, directory: dataDirectory });

  const idle = JSON.parse((await ask('/agents/threads', { method: 'POST', headers: ADA, body: {} })).text);
  const cut = expect(ask(`/agents/threads/${idle.thread_id}/stream`, { headers: ADA })).rejects.toThrow();
  await expect.poll(statusOf).toMatchObject({ streams: 1 });
  expect((await ask('/internal/drain', { method: 'POST', headers: RUNNER })).status).toBe(202);
  // A stream that no run of this instance will end holds up nobody.
  await cut;
  await expect.poll(statusOf).toEqual({ draining: true, requests: 0, streams: 0, runs: 1 });
  // A request that was on its way.
  expect((await ask(`/agents/threads/${thread}/runs/${runId}`, { headers: ADA })).status).toBe(200);
  // It would wait 180 s for the run.
  server.process.kill('SIGTERM');
  expect(await server.process.exited).toEqual({ code: 0, signal: null });
  expect(await database.store.db.selectFrom('agent_runs').select(['status', 'losses']).execute()).toEqual([
    { status: 'pending', losses: 0 },
  ]);
  const lines = server.process.stdout + server.process.stderr;
  for (const secret of [CANARY, gatewayToken, masterKey]) expect(lines).not.toContain(secret);
  expect(server.process.records.filter(({ msg }) => msg === 'request')).toEqual([]);

  // The next one knows the master key of the first, and goes on with its run.
  await using next = start();
  await next.ready;
  await expect.poll(statusOf, { timeout: 30_000 }).toMatchObject({ runs: 1 });
});

it('does not start with secrets in its environment, or with an input that is none', async () => {
  await using scratch = await createScratch();
  const config = await writeDeployment(scratch.path, { graphs: { agent: './graph.js:graph' } }, {});
  const refused = async (input: string, env: Record<string, string> = {}): Promise<string> => {
    const instance = { input, socketPath: join(scratch.path, 'api.sock') };
    await using server = startAgentServer(config, { dataDirectory: scratch.path, instance, env });
    expect((await server.process.exited).code).toBe(2);
    return server.process.stderr;
  };
  expect(await refused('{}', { DATABASE_URL: 'postgresql://a:hush@b/c' })).toMatch(
    /DATABASE_URL and SALLYPORT_AGENT_INPUT exclude each other/,
  );
  const said = await refused('{"masterKey": "hush"}');
  expect(said).toContain('SALLYPORT_AGENT_INPUT.masterKey: must be 32 bytes in base64');
  expect(said).not.toContain('hush');
});

/** Neither the arguments and the variables of the process, nor its descriptors, nor a file below the directory have one. */
async function expectNoSecrets({
  pid,
  directory,
}: {
  readonly pid: number;
  readonly directory: string;
}): Promise<void> {
  const files = (await readdir(directory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  for (const file of [`/proc/${pid}/environ`, `/proc/${pid}/cmdline`, ...files]) {
    const text = await readFile(file, 'latin1');
    for (const secret of [CANARY, gatewayToken, masterKey]) expect(text, file).not.toContain(secret);
  }
  const descriptors = await readdir(`/proc/${pid}/fd`);
  const links = await Promise.all(
    descriptors.map((one) => readlink(`/proc/${pid}/fd/${one}`).catch(() => '')),
  );
  expect(links.filter((link) => link.includes('.input'))).toEqual([]);
}
