// `sallyport runner` as a process: by itself, and as the child of a platform that is stopped or killed.
import { readdirSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { listMoves } from '../../../src/platform/deployments/revision-moves.ts';
import { graphFile, pack } from '../../platform/builder/builder-scene.ts';
import { createDeploymentPlatform, runnerReady } from '../../support/deployment-platform.ts';
import { openS3Server, s3Credentials } from '../../support/s3-server.ts';
import { createScratch } from '../../support/scratch.ts';
import { program, runToEnd } from '../../support/spawned-process.ts';

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
