// What deployments cost: `npm run bench -- deployments`. From the PATCH of a change to DEPLOYED with its packages at hand, beside the start
// of the same agent server by itself; and the memory of the runner and of idle deployments. Ends with 1 when a figure misses its limit.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ask } from '../scripts/demo-platform.ts';
import { type DeploymentScene, startScene } from '../scripts/deployment-scene.ts';
import { installProgram } from '../test/platform/storm/deployment-storm-package.ts';

const root = join(import.meta.dirname, '..');
const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, idle: { type: 'string', default: '3' } },
});
const [rounds, idle] = [Number(values.rounds), Number(values.idle)];
const MAX_ADDED_SECONDS = 5;
const MAX_RUNNER_MB = 120;
const SETTLE_MS = 8_000;
const LOOK_MS = 20;

type Revision = { readonly status: string };

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

const secondsSince = (began: number): number => (performance.now() - began) / 1000;

/** Of a change that no other revision has: its packages are those of before. */
async function patch(scene: DeploymentScene, id: string): Promise<number> {
  const { object_path: path, upload_url: url } = (await ask(
    scene,
    'POST',
    `/v2/deployments/${id}/upload-url`,
    {},
  )) as {
    readonly object_path: string;
    readonly upload_url: string;
  };
  const body = new Uint8Array(await readFile(join(scene.scratch, 'source.tar.gz')));
  const headers = { 'content-type': 'application/gzip' };
  const sent = await fetch(url, { method: 'PUT', headers, body });
  if (!sent.ok) throw new Error(`the upload was refused: ${sent.status}`);
  const began = performance.now();
  const source_revision_config = { source_tarball_path: path, langgraph_config_path: 'langgraph.json' };
  const { latest_revision_id: revision } = (await ask(scene, 'PATCH', `/v2/deployments/${id}`, {
    source_revision_config,
  })) as { readonly latest_revision_id: string };
  for (;;) {
    const one = (await ask(scene, 'GET', `/v2/deployments/${id}/revisions/${revision}`)) as Revision;
    if (one.status === 'DEPLOYED') return secondsSince(began);
    if (/FAILED|SKIPPED|INTERRUPTED/.test(one.status)) throw new Error(`the revision is ${one.status}`);
    await delay(LOOK_MS);
  }
}

/** The same graph by `sallyport agent-server`, with an embedded database that is there already. */
async function startAlone(launcher: string, app: string, data: string): Promise<number> {
  const began = performance.now();
  const args = ['agent-server', '--config', join(app, 'langgraph.json'), '--data-dir', data];
  const env = { ...process.env, SALLYPORT_AGENT_LISTEN: '127.0.0.1:0' };
  const child = spawn(process.execPath, [launcher, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  await whenReady(child);
  const seconds = secondsSince(began);
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
  return seconds;
}

async function whenReady(child: ChildProcess): Promise<void> {
  if (child.stdout === null) return;
  for await (const line of createInterface({ input: child.stdout }))
    if (line.includes('"msg":"ready"')) return void child.stdout.resume();
  throw new Error('the agent server did not start');
}

/** RSS and PSS of the processes whose working set belongs to the scene, by their command. */
function processes(data: string): readonly { name: string; rss: number; pss: number }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        if (!readlinkSync(`/proc/${pid}/exe`).endsWith('/node')) return [];
        const at = command.findIndex((word) => word.endsWith('sallyport.js'));
        const name = at === -1 ? 'other' : (command[at + 1] ?? '');
        const isOwn = name === 'runner' ? isChildOf(pid, data) : command.join(' ').includes(data);
        if (!isOwn) return [];
        const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
        const kb = (key: string): number => Number(new RegExp(`^${key}: *(\\d+)`, 'm').exec(rollup)?.[1]);
        return [{ name, rss: kb('Rss') / 1024, pss: kb('Pss') / 1024 }];
      } catch {
        return [];
      }
    });
}

/** A runner has its settings on a pipe: its platform names the directory. */
function isChildOf(pid: string, data: string): boolean {
  const [, parent] = /^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return readFileSync(`/proc/${parent}/cmdline`, 'utf8').includes(data);
}

const pssOf = (data: string): number => processes(data).reduce((sum, { pss }) => sum + pss, 0);
const runnerOf = (data: string): number => processes(data).find(({ name }) => name === 'runner')?.rss ?? 0;

async function run(): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  console.log(`${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.versions.node}`);
  console.log(`load before: ${loadavg().map((one) => one.toFixed(2))}`);
  // What people run: the bundle. From the sources, each process also holds what removes their types.
  const { launcher } = cleanup.use(await installProgram());
  const scene = await startScene(cleanup, { launcher });
  const app = join(scene.scratch, 'greeter');
  await cp(join(root, 'config', 'deploy-demo'), app, { recursive: true });
  await writeFile(join(app, '.env'), 'GREETING=Hello\n');
  const packed = spawn('tar', ['-czf', join(scene.scratch, 'source.tar.gz'), '-C', app, '.']);
  await once(packed, 'exit');
  const first = await scene.deploy([app, '--name', 'first', '--json']);
  if (first.code !== 0) throw new Error(first.stderr);
  const id = String(/[0-9a-f-]{36}/.exec(first.stdout)?.[0]);
  const { resources } = (await ask(scene, 'GET', '/v2/deployments?name_contains=first')) as {
    readonly resources: readonly { readonly id: string }[];
  };
  const deployment = resources[0]?.id ?? id;
  await symlink(join(root, 'node_modules'), join(app, 'node_modules'));
  const data = join(scene.scratch, 'alone');
  await startAlone(launcher, app, data);
  const [changed, alone]: [number[], number[]] = [[], []];
  for (let n = 0; n < rounds; n += 1) {
    alone.push(await startAlone(launcher, app, data));
    changed.push(await patch(scene, deployment));
  }
  await delay(SETTLE_MS);
  const before = pssOf(scene.data);
  for (let n = 0; n < idle; n += 1) {
    const { code, stderr } = await scene.deploy([app, '--name', `idle-${n}`]);
    if (code !== 0) throw new Error(stderr);
  }
  await delay(SETTLE_MS);
  const [after, runner] = [pssOf(scene.data), runnerOf(scene.data)];
  const shown = (all: readonly number[]): string =>
    `${median(all).toFixed(2)} s (${Math.min(...all).toFixed(2)} to ${Math.max(...all).toFixed(2)}, ${all.length} rounds)`;
  const added = median(changed) - median(alone);
  console.log(`PATCH to DEPLOYED, packages at hand: ${shown(changed)}`);
  console.log(`the same agent server by itself:      ${shown(alone)}`);
  console.log(`added: ${added.toFixed(2)} s, at most ${MAX_ADDED_SECONDS}`);
  console.log(
    `runner with ${idle + 1} deployments: ${runner.toFixed(0)} MB resident, at most ${MAX_RUNNER_MB}`,
  );
  console.log(`each idle deployment: ${((after - before) / idle).toFixed(0)} MB (PSS of all its processes)`);
  console.log(`load after: ${loadavg().map((one) => one.toFixed(2))}`);
  if (added > MAX_ADDED_SECONDS || !(runner > 0 && runner <= MAX_RUNNER_MB)) process.exitCode = 1;
}

await run();
process.exit();
