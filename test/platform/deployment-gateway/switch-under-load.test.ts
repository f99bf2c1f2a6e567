// Redeploys of a real agent server under load, through the gateway: clients that never retry see no failed request, streams are whole,
// and runs that an old instance has begun end there or go on in the new one.
import { randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { AgentInput } from '../../../src/platform/agent-server/contract.ts';
import { createInstanceControl } from '../../../src/platform/deployment-gateway/instance-control.ts';
import type { ServedDeployment } from '../../../src/platform/deployment-gateway/target-table.ts';
import { retire } from '../../../src/platform/runner/fleet/retirement.ts';
import { type AgentProcess, startAgentServer, writeDeployment } from '../../support/agent-process.ts';
import { createTestDatabase } from '../../support/platform-database.ts';
import { createScratch } from '../../support/scratch.ts';
import { createDeploymentScene } from './gateway-scene.ts';

const GRAPH = `
import { Annotation, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ steps: Annotation(), done: Annotation() });
export const graph = new StateGraph(State)
  .addNode('work', async ({ steps }, { writer }) => {
    for (let step = 0; step < steps; step += 1) {
      writer({ step });
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    return { done: steps };
  })
  .addEdge('__start__', 'work')
  .compile();
`;

const SWITCHES = 4;
const STREAMS = 12;
const REQUESTS_PER_SECOND = 80;

it('loses no request and no event', { tags: 'long', timeout: 240_000 }, async () => {
  await using database = await createTestDatabase();
  await using scratch = await createScratch();
  await using scene = await createDeploymentScene();
  const config = await writeDeployment(
    join(scratch.path, 'source'),
    { graphs: { agent: './graph.js:graph' } },
    { 'graph.js': GRAPH, 'package.json': '{"type": "module"}' },
  );
  const deployment = scene.deployment();
  const masterKey = randomBytes(32).toString('base64');
  const started: AgentProcess[] = [];
  const start = async () => {
    const instance = await startInstance({
      ...{ config, masterKey, deployment, databaseUrl: database.url },
      directory: join(scratch.path, String(started.length)),
    });
    started.push(instance.process);
    return instance;
  };
  const load = new Load(scene.gateway.addressOf(deployment), scene.key);
  let current = await start();
  scene.gateway.targets.turn(deployment, current.revision);
  await load.begin();
  const retiring: Promise<void>[] = [];
  const never = new AbortController().signal;
  for (let i = 0; i < SWITCHES; i += 1) {
    const next = await start();
    const old = current;
    scene.gateway.targets.turn(deployment, next.revision);
    retiring.push(retire(old.agent, { targets: scene.gateway.targets, signal: never }));
    current = next;
    await load.more(REQUESTS_PER_SECOND);
  }
  await load.end();
  await Promise.all(retiring);
  expect(load.failures).toEqual([]);
  expect(load.streams).toBeGreaterThanOrEqual(STREAMS);
  expect(load.requests).toBeGreaterThan(200);
  const rows = await database.store.db.selectFrom('agent_runs').select(['status', 'losses']).execute();
  expect(rows.filter(({ status, losses }) => status !== 'success' || losses > 0)).toEqual([]);
  const ended = await Promise.all(started.slice(0, -1).map(({ process }) => process.exited));
  expect(ended).toEqual(ended.map(() => ({ code: 0, signal: null })));
  for (const one of started) await one[Symbol.asyncDispose]();
});

type Started = {
  readonly config: string;
  readonly directory: string;
  readonly databaseUrl: string;
  readonly masterKey: string;
  readonly deployment: ServedDeployment;
};

/** As the runner has it. */
async function startInstance({ config, directory, databaseUrl, masterKey, deployment }: Started) {
  const gatewayToken = randomBytes(32).toString('base64url');
  const revisionId = crypto.randomUUID();
  const { id, name } = deployment;
  const input: AgentInput = {
    ...{ variables: {}, databaseUrl, masterKey },
    deployment: { id, name, revisionId, gatewayToken, access: 'gateway', mountPrefix: `/d/${id}` },
  };
  const socketPath = `${directory}.sock`;
  const process = startAgentServer(config, {
    ...{ dataDirectory: directory, instance: { socketPath, input: JSON.stringify(input) } },
  });
  await process.ready;
  const served = { id: revisionId, socketPath, gatewayToken };
  const control = createInstanceControl(served);
  const ended = process.process.exited.then(() => 'ended');
  return {
    process,
    revision: { id: revisionId, access: 'gateway' as const, instances: [served] },
    agent: {
      ...{ served, control, ended },
      workload: { pid: 0, applyPolicy: async () => undefined, memoryBytes: async () => 0 },
      async stop() {
        process.process.kill('SIGTERM');
        await process.process.exited;
      },
    },
  };
}

/** Clients that never retry: requests at a constant rate, and streams one after the other. */
class Load {
  readonly failures: string[] = [];
  requests = 0;
  streams = 0;
  readonly #address: string;
  readonly #key: string;
  readonly #running: Promise<void>[] = [];
  readonly #moments = new EventEmitter();
  #thread = '';
  #isEnding = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(address: string, key: string) {
    this.#address = address;
    this.#key = key;
  }

  async begin(): Promise<void> {
    this.#thread = (await this.#json('POST', '/threads', {})).thread_id;
    for (let i = 0; i < STREAMS; i += 1) this.#running.push(this.#follow());
    this.#timer = setInterval(() => this.#running.push(this.#ask()), 1000 / REQUESTS_PER_SECOND);
  }

  /** When so many requests have been sent. */
  async more(requests: number): Promise<void> {
    for (let sent = 0; sent < requests; sent += 1) await once(this.#moments, 'request');
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    clearInterval(this.#timer);
    await Promise.all(this.#running);
  }

  /** Reads, and now and then a run that is waited for. */
  async #ask(): Promise<void> {
    this.requests += 1;
    this.#moments.emit('request');
    const isRun = this.requests % 10 === 0;
    try {
      if (!isRun) return void (await this.#json('GET', `/threads/${this.#thread}`));
      const result = await this.#json('POST', '/runs/wait', { assistant_id: 'agent', input: { steps: 1 } });
      if (result.done !== 1) this.failures.push(`a run came to ${JSON.stringify(result)}`);
    } catch (error) {
      this.failures.push(`${isRun ? 'a run' : 'a read'}: ${String(error)}`);
    }
  }

  async #follow(): Promise<void> {
    while (!this.#isEnding)
      try {
        await this.#stream(75);
        this.streams += 1;
      } catch (error) {
        this.failures.push(`a stream: ${String(error)}`);
      }
  }

  /** Whole: each step once, in order, and the ids without a gap. */
  async #stream(steps: number): Promise<void> {
    const { thread_id: thread } = await this.#json('POST', '/threads', {});
    const body = { assistant_id: 'agent', input: { steps }, stream_mode: ['custom', 'values'] };
    const response = await this.#fetch('POST', `/threads/${thread}/runs/stream`, body);
    const frames = (await response.text()).split('\n\n').filter((frame) => /^event:/m.test(frame));
    const ids = frames.map((frame) => Number(/^id: (\d+)$/m.exec(frame)?.[1]));
    const seen = frames
      .filter((frame) => frame.includes('event: custom'))
      .map((frame) => JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '{}').step);
    expect(seen).toEqual(Array.from({ length: steps }, (_, i) => i));
    expect(ids).toEqual(ids.map((_, i) => i));
    expect(frames.at(-1)).toContain(`"done":${steps}`);
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  async #json(method: string, path: string, body?: object): Promise<any> {
    return (await this.#fetch(method, path, body)).json();
  }

  async #fetch(method: string, path: string, body?: object): Promise<Response> {
    const headers = { 'x-api-key': this.#key, ...(body && { 'content-type': 'application/json' }) };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(`${this.#address}${path}`, init);
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return response;
  }
}
