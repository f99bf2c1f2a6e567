// `npm run export:demo`: a platform from nothing, traces of the public JavaScript client, an export of them to an S3 server of this process,
// and what a reader of Parquet finds in its files. The demo fails when it is not as expected.
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { zstdDecompressSync } from 'node:zlib';
import { parquetReadObjects } from 'hyparquet';
import { Client } from 'langsmith';
import { traceable } from 'langsmith/traceable';
import { openS3Server, type S3Server } from '../test/support/s3-server.ts';
import {
  ask,
  createFirstKey,
  type DemoPlatform,
  endProcess,
  followPlatform,
  showEvents,
  spawnPlatform,
} from './demo-platform.ts';

const PROJECT = 'harbour-guide';
const BUCKET = 'demo-traces';
const SECRET = 'secret-of-the-demo-bucket';
const TRACES = 12;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function expect(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`not as expected: ${what}`);
}

async function trace({ url, key }: DemoPlatform): Promise<void> {
  const client = new Client({ apiUrl: url, apiKey: key });
  const shared = { client, project_name: PROJECT, tracingEnabled: true };
  const count = traceable(async (topic: string) => ({ topic, bridges: 12 }), {
    ...{ ...shared, name: 'count', run_type: 'tool' },
  });
  const respond = traceable(async (topic: string) => `${(await count(topic)).bridges} ${topic} – Brücken`, {
    ...{ ...shared, name: 'respond', run_type: 'chain' },
  });
  for (let n = 1; n <= TRACES; n += 1) await respond(`bridges ${n}`);
  await client.awaitPendingTraceBatches();
  say(`\nlangsmith/traceable: ${TRACES} traces with 2 runs each, in the project ${PROJECT}`);
}

type Record = { readonly id: string; readonly status: string };
type RunRecord = {
  readonly status: string;
  readonly start_time: string;
  readonly metadata: {
    readonly result: { readonly rows_written: number; readonly exported_files: string[] };
  };
};

async function createExport(platform: DemoPlatform, s3: S3Server): Promise<Record> {
  const path = '/api/v1/bulk-exports';
  const destination = (await ask(platform, 'POST', `${path}/destinations`, {
    ...{ destination_type: 's3', display_name: 'demo' },
    config: { bucket_name: BUCKET, prefix: 'exports', endpoint_url: s3.endpoint },
    credentials: { access_key_id: 'AKIAEXAMPLE', secret_access_key: SECRET },
  })) as { readonly id: string; readonly credentials_keys: readonly string[] };
  say(
    `\nPOST ${path}/destinations, after a test write: ${destination.credentials_keys.join(', ')} are sealed`,
  );
  const [project] = (await ask(platform, 'GET', `/api/v1/sessions?name=${PROJECT}`)) as Record[];
  const day = 24 * 3_600_000;
  const today = Math.floor(Date.now() / day) * day;
  const [start, end] = [new Date(today - day).toISOString(), new Date(today + day).toISOString()];
  const made = (await ask(platform, 'POST', path, {
    ...{ bulk_export_destination_id: destination.id, session_id: project?.id },
    ...{ start_time: start, end_time: end, compression: 'zstandard', format_version: 'v2_beta' },
  })) as Record;
  say(`POST ${path}: ${made.status}, from ${start} to ${end}`);
  return made;
}

const WAIT_MS = 60_000;
const POLL_MS = 200;

async function follow(platform: DemoPlatform, { id }: Record): Promise<readonly RunRecord[]> {
  const untilMs = performance.now() + WAIT_MS;
  for (let status = ''; ; ) {
    const now = (await ask(platform, 'GET', `/api/v1/bulk-exports/${id}`)) as Record;
    if (now.status !== status) say(`GET /api/v1/bulk-exports/{id}: ${now.status}`);
    status = now.status;
    if (status === 'COMPLETED') break;
    expect(['CREATED', 'RUNNING'].includes(status) && performance.now() < untilMs, 'the export completes');
    await delay(POLL_MS);
  }
  return (await ask(platform, 'GET', `/api/v1/bulk-exports/${id}/runs`)) as readonly RunRecord[];
}

/** Rows by their names. */
async function readFile(s3: S3Server, key: string): Promise<ReadonlyMap<string, number>> {
  const content = s3.objects.get(`/${BUCKET}/${key}`);
  if (content === undefined) throw new Error(`not as expected: the bucket has ${key}`);
  const file = new Uint8Array(content).buffer;
  const ZSTD = (bytes: Uint8Array): Uint8Array => new Uint8Array(zstdDecompressSync(bytes));
  const rows = await parquetReadObjects({ file, columns: ['name', 'outputs'], compressors: { ZSTD } });
  const counts = new Map<string, number>();
  for (const { name, outputs } of rows) {
    counts.set(String(name), (counts.get(String(name)) ?? 0) + 1);
    if (name === 'respond') expect(String(outputs).includes('Brücken'), 'the outputs are as they were sent');
  }
  return counts;
}

async function show(platform: DemoPlatform, s3: S3Server): Promise<void> {
  await trace(platform);
  const runs = await follow(platform, await createExport(platform, s3));
  const total = new Map<string, number>();
  say('');
  for (const { start_time: start, status, metadata } of runs) {
    const { rows_written: rows = 0, exported_files: files = [] } = metadata.result ?? {};
    say(`${start.slice(0, 10)}  ${status}  ${rows} rows  ${files.length} files`);
    for (const key of files) {
      say(`  ${key}`);
      for (const [name, count] of await readFile(s3, key)) {
        say(`  hyparquet: ${count} × ${name}`);
        total.set(name, (total.get(name) ?? 0) + count);
      }
    }
  }
  expect(total.get('respond') === TRACES && total.get('count') === TRACES, 'the files have each run once');
  expect(runs.length === 2, 'there is a run for each day');
  await showEvents(platform, ['create_bulk_export_destination', 'create_bulk_export'], SECRET);
}

// The client says of calls of its API that a later one will replace them.
process.noDeprecation = true;
const scratch = await mkdtemp(join(tmpdir(), 'sallyport-exports-'));
// Under root the database runs as another user.
await chmod(scratch, 0o755);
try {
  await using s3 = await openS3Server();
  const data = join(scratch, 'data');
  say('$ KEY=$(sallyport platform init)');
  const key = await createFirstKey(data);
  say(`an S3 server listens at ${s3.endpoint}\n$ sallyport platform`);
  const child = spawnPlatform(data, undefined, {
    SALLYPORT_PLATFORM_SANDBOXES_RUNTIME: 'attached',
    SALLYPORT_PLATFORM_EXPORTS_CLEARTEXT_ENDPOINTS: s3.endpoint,
    SALLYPORT_PLATFORM_EXPORTS_ALLOW_LOOPBACK: 'true',
  });
  try {
    await show(await followPlatform(child, { key, data }), s3);
  } finally {
    await endProcess(child);
  }
  say('\nEverything was as expected.');
} finally {
  await rm(scratch, { recursive: true, force: true });
}
