// `sallyport export-worker` as a process: by itself, and as the child of a platform, whose exports it goes on with after it was killed.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { zstdDecompressSync } from 'node:zlib';
import { parquetReadObjects } from 'hyparquet';
import { expect, it } from 'vitest';
import { createDeploymentPlatform, type DeploymentPlatform } from '../../support/deployment-platform.ts';
import type { PlatformProcess } from '../../support/platform-process.ts';
import { openS3Server, type S3Server } from '../../support/s3-server.ts';
import { createScratch } from '../../support/scratch.ts';
import { type LogRecord, program, runToEnd, SpawnedProcess } from '../../support/spawned-process.ts';

const patience = { timeout: 90_000, interval: 100 };
const long = { tags: 'long', timeout: 240_000 };

it('says that no platform runs', async () => {
  await using scratch = await createScratch();
  const { code, stderr } = await runToEnd(
    process.execPath,
    [program, 'export-worker', '--data-dir', scratch.path],
    {},
  );
  expect([code, stderr]).toEqual([2, expect.stringContaining('No platform runs on')]);
});

it('names an option that is wrong', async () => {
  const { code, stderr } = await runToEnd(process.execPath, [program, 'export-worker', '--runs', 'x'], {});
  expect(code).toBe(2);
  expect(stderr).toContain('SALLYPORT_PLATFORM_EXPORTS_WORKER_RUNS');
});

type Client = {
  ask(method: string, path: string, body?: unknown): Promise<Record<string, string>>;
};

function clientOf(scene: DeploymentPlatform, port: unknown): Client {
  return {
    async ask(method, path, body) {
      const headers = { 'x-api-key': scene.key, 'content-type': 'application/json' };
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      const response = await fetch(`http://127.0.0.1:${String(port)}${path}`, init);
      const text = await response.text();
      if (!response.ok) throw new Error(text);
      return text === '' ? {} : JSON.parse(text);
    },
  };
}

const settingsOf = (s3: S3Server) => ({
  SALLYPORT_PLATFORM_EXPORTS_CLEARTEXT_ENDPOINTS: s3.endpoint,
  SALLYPORT_PLATFORM_EXPORTS_ALLOW_LOOPBACK: 'true',
});

/** Of two days. Returns their ids. */
async function sendRuns(client: Client, count: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  const post = ids.map((id, at) => ({
    ...{ id, trace_id: id, name: `run ${at}`, run_type: 'chain', session_name: 'exported' },
    dotted_order: `202601${at % 2 === 0 ? '01' : '02'}T0000${String(at % 60).padStart(2, '0')}000000Z${id}`,
    start_time: `2026-01-0${at % 2 === 0 ? 1 : 2}T00:00:${String(at % 60).padStart(2, '0')}Z`,
    inputs: { text: 'é'.repeat(10) },
  }));
  await client.ask('POST', '/api/v1/runs/batch', { post });
  return ids;
}

async function createExport(client: Client, s3: S3Server, days = 2): Promise<string> {
  const destination = await client.ask('POST', '/api/v1/bulk-exports/destinations', {
    ...{ destination_type: 's3', display_name: 'bucket' },
    config: { bucket_name: 'traces', prefix: 'exports', endpoint_url: s3.endpoint },
    credentials: { access_key_id: 'AKIAEXAMPLE', secret_access_key: 'not-a-secret' },
  });
  const [project] = (await client.ask('GET', '/api/v1/sessions')) as unknown as { readonly id: string }[];
  const made = await client.ask('POST', '/api/v1/bulk-exports', {
    ...{ bulk_export_destination_id: destination['id'], session_id: project?.id, compression: 'zstandard' },
    ...{ start_time: '2026-01-01T00:00:00Z', end_time: `2026-01-0${1 + days}T00:00:00Z` },
  });
  return made['id'] ?? '';
}

async function readIds(s3: S3Server): Promise<readonly string[]> {
  const files = [...s3.objects].filter(([key]) => key.endsWith('.parquet'));
  const rows = files.map(async ([, content]) => {
    const file = new Uint8Array(content).buffer;
    const ZSTD = (input: Uint8Array): Uint8Array => new Uint8Array(zstdDecompressSync(input));
    return parquetReadObjects({ file, columns: ['id'], compressors: { ZSTD } });
  });
  return (await Promise.all(rows)).flat().map(({ id }) => String(id));
}

const workerReady = ({ process: running }: PlatformProcess): Promise<LogRecord> =>
  running.record(({ msg }) => msg === 'the export worker is ready');

/** Undefined until it has said that it is ready. */
function workerOf({ process: { stdout } }: PlatformProcess): number | undefined {
  const line = stdout.split('\n').find((one) => one.includes('the export worker is ready'));
  return line === undefined ? undefined : (JSON.parse(line) as { readonly pid: number }).pid;
}

it('is started with the first export, writes its files, and ends with the platform', long, async () => {
  await using s3 = await openS3Server();
  await using scene = await createDeploymentPlatform();
  const platform = await scene.start({
    ...settingsOf(s3),
    SALLYPORT_PLATFORM_EXPORTS_WORKER_METRICS_LISTEN: '127.0.0.1:0',
  });
  const client = clientOf(scene, (await platform.ready).port);
  const ids = await sendRuns(client, 50);
  const id = await createExport(client, s3);
  const ready = await workerReady(platform);
  const statusOf = async () => (await client.ask('GET', `/api/v1/bulk-exports/${id}`))['status'];
  await expect.poll(statusOf, patience).toBe('COMPLETED');
  expect((await readIds(s3)).toSorted()).toEqual(ids.toSorted());
  const metrics = await (await fetch(`${String(ready['metrics'])}/metrics`)).text();
  expect(metrics).toContain('sallyport_platform_export_rows_total 50\n');
  expect(metrics).toContain('sallyport_platform_export_attempt_seconds_count{outcome="completed"} 2\n');
  platform.process.kill('SIGTERM');
  expect(await platform.process.exited).toMatchObject({ code: 0 });
  expect(platform.process.stdout).toContain('the export worker is stopping');
  expect(platform.process.stdout).not.toContain('it is killed');
});

it(
  'that an operator starts has the sizes of the heap, and its settings from variables and options',
  long,
  async () => {
    await using scene = await createDeploymentPlatform();
    await scene.start({ SALLYPORT_PLATFORM_EXPORTS_WORKER_START: 'false' });
    const args = [program, 'export-worker', '--data-dir', scene.dataDirectory, '--runs', '3'];
    const env = { DATABASE_URL: scene.database.url };
    await using worker = new SpawnedProcess(process.execPath, args, { env });
    const { runs, pid } = await worker.record(({ msg }) => msg === 'the export worker is ready');
    expect([runs, pid]).toEqual([3, worker.pid]);
    const command = readFileSync(`/proc/${worker.pid}/cmdline`, 'utf8').split('\0');
    expect(command.filter((word) => word === '--max-old-space-size=640')).toHaveLength(1);
    // Neither was lost when the process replaced itself.
    expect(command.slice(-5, -1)).toEqual(['--data-dir', scene.dataDirectory, '--runs', '3']);
    worker.kill('SIGTERM');
    expect(await worker.exited).toMatchObject({ code: 0 });
  },
);

it(
  'that is killed in the middle of an upload leaves the run to the next one: each row once, no upload',
  long,
  async () => {
    const started: PlatformProcess[] = [];
    let kills = 0;
    await using s3 = await openS3Server({
      override(request) {
        const isPart = request.method === 'PUT' && request.url?.includes('.parquet') === true;
        const [running] = started;
        const pid = running && workerOf(running);
        if (isPart && kills === 0 && pid !== undefined) {
          kills += 1;
          process.kill(pid, 'SIGKILL');
        }
        return undefined;
      },
    });
    await using scene = await createDeploymentPlatform();
    const platform = await scene.start({ ...settingsOf(s3), SALLYPORT_PLATFORM_EXPORTS_WORKER_RUNS: '1' });
    started.push(platform);
    const client = clientOf(scene, (await platform.ready).port);
    const ids = await sendRuns(client, 40);
    const id = await createExport(client, s3);
    const statusOf = async () => (await client.ask('GET', `/api/v1/bulk-exports/${id}`))['status'];
    await expect.poll(statusOf, patience).toBe('COMPLETED');
    expect(kills).toBe(1);
    expect((await readIds(s3)).toSorted()).toEqual(ids.toSorted());
    expect(s3.uploads.keys).toEqual([]);
    type Listed = {
      readonly retry_number: number;
      readonly metadata: { readonly result: { rows_written: number } };
    };
    const runs = (await client.ask('GET', `/api/v1/bulk-exports/${id}/runs`)) as unknown as readonly Listed[];
    expect(runs.map(({ retry_number: retries }) => retries)).toEqual([0, 0]);
    expect(runs.reduce((sum, { metadata }) => sum + metadata.result.rows_written, 0)).toBe(40);
  },
);
