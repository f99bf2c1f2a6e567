// `sallyport runner` as a process: by itself, and as the child of a platform that is stopped or killed.
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { listMoves } from '../../../src/platform/deployments/revision-moves.ts';
import { graphFile, pack } from '../../platform/builder/builder-scene.ts';
import { createDeploymentPlatform, runnerReady } from '../../support/deployment-platform.ts';
import { openS3Server, s3Credentials } from '../../support/s3-server.ts';
import { createScratch } from '../../support/scratch.ts';
import { type Finished, type LogRecord, program, runToEnd } from '../../support/spawned-process.ts';

const patience = { timeout: 60_000, interval: 100 };

it('says that no platform runs', async () => {
  await using scratch = await createScratch();
  const args = ['runner', '--data-dir', join(scratch.path, 'data'), '--isolation', 'none'];
  const { code, stderr } = await runToEnd(process.execPath, [program, ...args], {});
  expect([code, stderr]).toEqual([2, expect.stringContaining('No platform runs on')]);
});

it('names an option that is wrong', async () => {
  const { code, stderr } = await runToEnd(process.execPath, [program, 'runner', '--isolation', 'some'], {});
  expect(code).toBe(2);
  expect(stderr).toContain('SALLYPORT_PLATFORM_RUNNER_ISOLATION');
});

/** Of processes whose arguments name the directory. */
function processesOf(directory: string): readonly string[] {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return ids.filter((id) => {
    try {
      return readFileSync(`/proc/${id}/cmdline`, 'utf8').includes(directory);
    } catch {
      return false;
    }
  });
}

async function ask(gateway: unknown, id: string, key: string): Promise<number> {
  const url = `${String(gateway)}/d/${id}/assistants/search`;
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  try {
    return (await fetch(url, { method: 'POST', headers, body: '{}' })).status;
  } catch {
    return 0;
  }
}

it('is started with the first deployment, and ends with the platform', {
  tags: 'long',
  timeout: 240_000,
}, async () => {
  await using scene = await createDeploymentPlatform();
  const platform = await scene.start();
  const { id, revisionId } = await scene.addDeployment();
  const { gateway, pid } = await runnerReady(platform);
  await expect.poll(() => scene.statusOf(revisionId), patience).toBe('DEPLOYED');
  expect(await ask(gateway, id, scene.key)).toBe(200);
  expect(await ask(gateway, id, 'sp_sk_wrong')).toBe(401);
  const seen = ['environ', 'cmdline']
    .map((name) => readFileSync(`/proc/${String(pid)}/${name}`, 'utf8'))
    .join('');
  expect(seen).not.toContain('DATABASE_URL');
  expect(seen).not.toContain(String(scene.database.connection.password));
  platform.process.kill('SIGTERM');
  expect(await platform.process.exited).toMatchObject({ code: 0 });
  expect(platform.process.stdout).toContain('the runner is draining');
  expect(platform.process.stdout).not.toContain('it is killed');
  expect(processesOf(scene.dataDirectory)).toEqual([]);
  expect(await readdir(join(scene.dataDirectory, 'runner', 'run'))).toEqual([]);
});

it('builds a source that the platform keeps in a bucket', { tags: 'long', timeout: 120_000 }, async () => {
  await using s3 = await openS3Server();
  await using scene = await createDeploymentPlatform();
  const bucket = `s3://sources/here?endpoint=${encodeURIComponent(s3.endpoint)}`;
  const platform = await scene.start({ ...s3Credentials, SALLYPORT_PLATFORM_DEPLOYMENTS_SOURCES: bucket });
  const { port } = await platform.ready;
  const api = `http://127.0.0.1:${port}/v2/deployments`;
  const send = async (method: string, url: string, body: object): Promise<Record<string, string>> => {
    const headers = { 'x-api-key': scene.key, 'content-type': 'application/json' };
    const response = await fetch(url, { method, headers, body: JSON.stringify(body) });
    expect(response.status).toBeLessThan(300);
    return (await response.json()) as Record<string, string>;
  };
  const made = { name: 'app', source: 'internal_source', source_config: {}, source_revision_config: {} };
  const { id } = await send('POST', api, made);
  const { upload_url: url = '', object_path: path } = await send('POST', `${api}/${id}/upload-url`, {});
  const headers = { 'content-type': 'application/gzip' };
  const archive = new Uint8Array(pack(graphFile));
  const sent = await fetch(url, { method: 'PUT', headers, body: archive });
  expect(sent.status).toBe(200);
  expect([...s3.objects.keys()]).toEqual([expect.stringContaining(`/sources/here/`)]);
  const source_revision_config = { source_tarball_path: path };
  const changed = await send('PATCH', `${api}/${id}`, { source_revision_config });
  const statuses = async (): Promise<readonly string[]> =>
    (await listMoves(scene.database.store.db, changed['latest_revision_id'] ?? '')).map(({ to }) => to);
  // Nothing of it can be run: it has no packages.
  await expect.poll(statuses, patience).toContain('AWAITING_DEPLOY');
});

/** The address of a metrics listener, from the line that says that its process is ready. */
async function metricsOf({ metrics }: LogRecord): Promise<string> {
  return (await fetch(`${String(metrics)}/metrics`)).text();
}

it('exports what became of deployments: states by the platform, the rest by the runner', {
  tags: 'long',
  timeout: 240_000,
}, async () => {
  await using scene = await createDeploymentPlatform();
  const platform = await scene.start({
    SALLYPORT_PLATFORM_METRICS_LISTEN: '127.0.0.1:0',
    SALLYPORT_PLATFORM_RUNNER_METRICS_LISTEN: '127.0.0.1:0',
  });
  const { record: ready } = await platform.ready;
  const { id, revisionId } = await scene.addDeployment();
  const runner = await runnerReady(platform);
  await expect.poll(() => scene.statusOf(revisionId), patience).toBe('DEPLOYED');
  expect(await ask(runner['gateway'], id, scene.key)).toBe(200);
  const states = await metricsOf(ready);
  expect(states).toContain('sallyport_platform_deployments{kind="deployment",state="READY"} 1\n');
  expect(states).toContain('sallyport_platform_deployments{kind="revision",state="DEPLOYED"} 1\n');
  const counted = await metricsOf(runner);
  for (const line of [
    'runner_deployments 1',
    'agent_servers 1',
    'agent_start_seconds_count 1',
    'deployment_switch_seconds_count{outcome="deployed"} 1',
    'deployment_requests_total{status="200",refusal="none",end="complete"} 1',
    'agent_restarts_total 0',
  ])
    expect(counted).toContain(`\nsallyport_platform_${line}\n`);
  // Of the database, and for the platform alone.
  expect(counted).not.toContain('sallyport_platform_audit_events');
  const [agent] = processesOf('agent-server').filter((one) => processesOf(scene.dataDirectory).includes(one));
  process.kill(Number(agent), 'SIGKILL');
  await expect
    .poll(() => metricsOf(runner), patience)
    .toContain('\nsallyport_platform_agent_restarts_total 1\n');
  await expect
    .poll(() => metricsOf(runner), patience)
    .toContain('\nsallyport_platform_agent_start_seconds_count 2\n');
});

it('builds with the registries that variables and files of the operator name, and counts the seconds', {
  tags: 'long',
  timeout: 240_000,
}, async () => {
  await using scene = await createDeploymentPlatform();
  await using scratch = await createScratch();
  await mkdir(join(scratch.path, 'pip'));
  const pip = '[global]\nextra-index-url = https://user:c4n4ry@file.example.com/simple\n';
  await writeFile(join(scratch.path, 'pip', 'pip.conf'), pip);
  await writeFile(join(scratch.path, '.npmrc'), '@own:registry=https://own.example.com/\n');
  const platform = await scene.start({
    ...{ HOME: scratch.path, XDG_CONFIG_HOME: scratch.path },
    NPM_CONFIG_REGISTRY: 'https://user:c4n4ry@npm.example.com/',
    PIP_INDEX_URL: 'https://pip.example.com/simple',
    SALLYPORT_PLATFORM_RUNNER_METRICS_LISTEN: '127.0.0.1:0',
  });
  const app = join(scratch.path, 'app');
  await mkdir(app);
  await writeFile(join(app, 'langgraph.json'), '{"graphs": {"agent": "./agent.mjs:graph"}}');
  await writeFile(join(app, 'agent.mjs'), 'throw new Error("it is built alone")');
  const print = `import fs from 'node:fs';
    for (const name of ['npm_config_registry', 'PIP_INDEX_URL', 'PIP_EXTRA_INDEX_URL'])
      console.log(name, process.env[name]);
    console.log(fs.readFileSync(process.env.npm_config_userconfig, 'utf8'));`;
  await writeFile(join(app, 'print.mjs'), print);
  const { port } = await platform.ready;
  const env = { SALLYPORT_API_URL: `http://127.0.0.1:${port}`, SALLYPORT_API_KEY: scene.key };
  const deploy = (...args: readonly string[]): Promise<Finished> =>
    runToEnd(process.execPath, [program, 'deploy', ...args], { env });
  const { code, stderr } = await deploy(app, '--build-command', 'node print.mjs');
  expect([code, stderr]).toEqual([1, expect.stringContaining('DEPLOY_FAILED')]);
  const { stdout: log } = await deploy('logs', 'app', '--build');
  for (const line of [
    'npm_config_registry https://npm.example.com/',
    'PIP_INDEX_URL https://pip.example.com/simple',
    'PIP_EXTRA_INDEX_URL https://file.example.com/simple',
    '@own:registry=https://own.example.com/',
  ])
    expect(log).toContain(line);
  expect(log).not.toContain('c4n4ry');
  const counted = await metricsOf(await runnerReady(platform));
  for (const line of [
    'build_seconds_count{outcome="ready"} 1',
    'deployment_switch_seconds_count{outcome="failed"} 1',
  ])
    expect(counted).toContain(`\nsallyport_platform_${line}\n`);
});

it.each(['platform', 'runner', 'agent-server'])(
  'what ran is there again after kill -9 of the %s',
  { tags: 'long', timeout: 240_000 },
  async (victim) => {
    await using scene = await createDeploymentPlatform();
    const first = await scene.start();
    const { id, revisionId } = await scene.addDeployment();
    const before = await runnerReady(first);
    await expect.poll(() => scene.statusOf(revisionId), patience).toBe('DEPLOYED');
    let platform = first;
    let { gateway } = before;
    if (victim === 'platform') {
      first.process.kill('SIGKILL');
      await first.process.exited;
      await expect.poll(() => processesOf(scene.dataDirectory), patience).toEqual([]);
      platform = await scene.start();
      ({ gateway } = await runnerReady(platform));
    } else if (victim === 'runner') {
      process.kill(Number(before['pid']), 'SIGKILL');
      ({ gateway } = await platform.process.record(
        ({ msg, pid }) => msg === 'the runner is ready' && pid !== before['pid'],
      ));
    } else {
      const [agent] = processesOf('agent-server').filter((one) =>
        processesOf(scene.dataDirectory).includes(one),
      );
      process.kill(Number(agent), 'SIGKILL');
    }
    await expect.poll(() => ask(gateway, id, scene.key), patience).toBe(200);
    expect(await scene.statusOf(revisionId)).toBe('DEPLOYED');
    await expect.poll(() => readdir(join(scene.dataDirectory, 'runner', 'run')), patience).toHaveLength(1);
  },
);
