// A real graph, isolated, whose runs arrive in the tracing project of its deployment, by a key that is nowhere in it. Real processes.
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { createDeploymentPlatform, runnerReady } from '../../support/deployment-platform.ts';
import { projectRoot } from '../../support/spawned-process.ts';
import { isMissing, titled } from '../../workload/test-workloads.ts';

const patience = { timeout: 90_000, interval: 200 };
const TOKEN = /sp_tr_[0-9A-Za-z]{20}/;

/** It looks for what it must not have, and tries what it must not reach. */
const GRAPH = `
import { Annotation, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ said: Annotation() });
const ask = (path) =>
  fetch(process.env.LANGSMITH_ENDPOINT + path).then(({ status }) => status, () => 'unreachable');
export const graph = new StateGraph(State)
  .addNode('say', async () => ({
    said: JSON.stringify([process.env.LANGSMITH_API_KEY ?? 'no key', await ask('/info'), await ask('/sessions')]),
  }))
  .addEdge('__start__', 'say')
  .compile();
`;

async function ask(url: string, key: string, body?: unknown) {
  const headers = { 'x-api-key': key, 'content-type': 'application/json', connection: 'close' };
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(url, { headers, ...sent });
  return { status: response.status, body: JSON.parse(await response.text()) };
}

function readProcesses(): string {
  const read = (pid: string, name: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${name}`, 'latin1');
    } catch {
      return '';
    }
  };
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map((pid) => read(pid, 'cmdline') + read(pid, 'environ')).join('\n');
}

async function readFiles(directory: string): Promise<string> {
  const names = await readdir(directory, { recursive: true });
  const contents = names.map((name) => readFile(join(directory, name), 'latin1').catch(() => ''));
  return (await Promise.all(contents)).join('\n');
}

it.skipIf(isMissing('bubblewrap'))(
  titled('runs of a deployed graph are in the project of its name', 'bubblewrap'),
  { tags: ['long'], timeout: 240_000 },
  async () => {
    await using scene = await createDeploymentPlatform();
    await chmod(dirname(scene.dataDirectory), 0o711);
    const isolated = { SALLYPORT_PLATFORM_RUNNER_ISOLATION: 'bubblewrap' };
    const platform = await scene.start(isolated, { launcher: join(projectRoot, 'bin', 'sallyport.js') });
    const api = `http://127.0.0.1:${(await platform.ready).port}`;
    const { key } = scene;
    const { id, revisionId } = await scene.addDeployment(GRAPH);
    const { gateway } = await runnerReady(platform);
    await expect.poll(() => scene.statusOf(revisionId), patience).toMatch(/^DEPLOYED$|_FAILED$/);
    const logs = scene.database.store.db.selectFrom('deployment_logs').select('message');
    const lines = (await logs.execute()).map(({ message }) => message).join('\n');
    expect(await scene.statusOf(revisionId), lines).toBe('DEPLOYED');
    const call = () => ask(`${String(gateway)}/d/${id}/runs/wait`, key, { assistant_id: 'agent', input: {} });
    await expect.poll(async () => (await call()).body.said, patience).toBe('["no key",200,404]');
    const findRuns = async () => {
      const projects = await ask(`${api}/sessions?name=app-${id}`, key);
      const session = projects.body.map((one: { readonly id: string }) => one.id);
      if (session.length === 0) return [];
      const found = await ask(`${api}/runs/query`, key, { session, is_root: true });
      return found.body.runs;
    };
    await expect
      .poll(findRuns, patience)
      .toContainEqual(expect.objectContaining({ run_type: 'chain', status: 'success', parent_run_id: null }));
    expect(readProcesses()).not.toMatch(TOKEN);
    expect(await readFiles(scene.dataDirectory)).not.toMatch(TOKEN);
    expect(platform.process.stdout + platform.process.stderr).not.toMatch(TOKEN);
  },
);
