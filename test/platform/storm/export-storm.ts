// Exports of 30 days, while the workers, the platform and the server of objects are killed at random moments. Other files make the runs,
// and check what is there afterwards.
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parquetReadObjects } from 'hyparquet';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import type { Connection } from '../../../src/platform/store/database.ts';
import { createRandom, type Random } from '../../http1/mutation.ts';
import { initPlatform, type PlatformOptions } from '../../support/platform-process.ts';
import { program } from '../../support/spawned-process.ts';
import { type CapsWatch, watchCaps } from './export-caps.ts';
import { checkExports, type ExportedRun, type Stored, type StormExport } from './export-checks.ts';
import { StoredObjects } from './export-storage.ts';
import { type Ask, createAsk } from './export-storm-api.ts';
import { sendSource, type Source } from './export-storm-source.ts';
import { type KilledProgram, openKilledProgram } from './killed-program.ts';
import { openStormMonitor } from './storm-monitor.ts';
import { openStormProcess, type StormProcess } from './storm-process.ts';

export type ExportStorm = {
  readonly kills: number;
  /** Of each day. */
  readonly rows: number;
  readonly seed: number;
  readonly database: { readonly url: string; readonly ownerUrl: string };
  readonly owner: Connection;
  /** For the files of the processes, and for the objects. */
  readonly directory: string;
  onKill?(nth: number, what: string, exports: number): void;
};

export type ExportStormResult = {
  readonly errors: readonly string[];
  readonly exports: number;
  readonly runs: number;
  readonly rows: number;
  readonly retries: number;
  readonly most: CapsWatch['most'];
  readonly busyMs: number;
};

const EXPORTS = '/api/v1/bulk-exports';
const CAPS = { exports: 2, runs: 3 };
/** At once, of which two may run. */
const ALIVE = 3;
const [LEAST_PAUSE_MS, MOST_PAUSE_MS] = [200, 2_500];
const FINAL = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'TIMEDOUT']);
const COMPRESSIONS = ['none', 'gzip', 'snappy', 'zstandard'];
const MAX_END_MS = 600_000;
/** Uploads that a cancelled or failed run has left are aborted later. */
const MAX_CLEANUP_MS = 90_000;

export async function runExportStorm(storm: ExportStorm): Promise<ExportStormResult> {
  const { database, directory, owner } = storm;
  const startedMs = performance.now();
  await using opened = new AsyncDisposableStack();
  const objects = join(directory, 'objects');
  const storage = await openStorage(objects);
  opened.use(storage.program);
  const options: PlatformOptions = {
    dataDirectory: join(directory, 'platform'),
    ...{ database, env: settings(storage.endpoint) },
  };
  const { text: key } = mintKey('service');
  await initPlatform(options, key);
  const monitor = opened.use(openStormMonitor(owner));
  const platform = opened.use(
    openStormProcess({ ...options, monitor, name: 'p', onRecord: () => undefined }),
  );
  await platform.port();
  const caps = opened.use(watchCaps(owner, CAPS));
  const workers = [await openWorker('one', options), await openWorker('other', options)];
  for (const worker of workers) opened.use(worker);
  const ask = createAsk(() => platform.port(), key);
  const source = await sendSource(ask, storm.rows);
  const scene: Scene = { storm, ask, source, platform, workers, storage: storage.program, caps };
  await addDestination(ask, storage.endpoint);
  await load(scene);
  const exports = await readExports(ask);
  const stored = await readStored(objects);
  for (const one of [...workers, platform, storage.program]) await one.end();
  const runs = exports.flatMap((one) => one.runs);
  return {
    errors: [
      ...[...workers, platform, storage.program].flatMap((one) => one.errors),
      ...new Set(caps.errors),
      ...checkExports(exports, source.ids, stored),
    ],
    ...{ exports: exports.length, runs: runs.length, most: caps.most },
    rows: runs.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0),
    retries: runs.reduce((sum, { retries }) => sum + retries, 0),
    busyMs: performance.now() - startedMs,
  };
}

function settings(endpoint: string): Record<string, string> {
  const prefix = 'SALLYPORT_PLATFORM_EXPORTS_';
  return {
    [`${prefix}WORKER_START`]: 'false',
    [`${prefix}WORKER_RUNS`]: '4',
    [`${prefix}ALLOW_LOOPBACK`]: 'true',
    [`${prefix}CLEARTEXT_ENDPOINTS`]: endpoint,
    [`${prefix}RETRY_DELAY_MS`]: '1000',
    // A storm may take more than an hour's.
    [`${prefix}CREATIONS_PER_HOUR`]: '100000',
    DATA_EXPORT_RUN_LIMIT: String(CAPS.exports),
    BULK_EXPORT_MAX_CONCURRENT_RUNS: String(CAPS.runs),
  };
}

async function openStorage(directory: string) {
  const file = join(import.meta.dirname, 'export-storage.ts');
  // The port of the first process is kept: the next ones listen there too.
  const args = [file, directory, '0'];
  const { program: opened, ready } = await openKilledProgram({
    ...{ name: 'the server of objects', args },
    isReady: ({ msg }) => msg === 'listening',
  });
  args[2] = String(ready['port']);
  return { program: opened, endpoint: `http://127.0.0.1:${ready['port']}` };
}

async function openWorker(name: string, { dataDirectory, database, env }: PlatformOptions) {
  const { program: opened } = await openKilledProgram({
    ...{ name: `worker ${name}`, args: [program, 'export-worker', '--data-dir', dataDirectory] },
    env: {
      ...env,
      DATABASE_URL: database?.url ?? '',
      SALLYPORT_PLATFORM_DATABASE_OWNER_URL: database?.ownerUrl ?? '',
    },
    isReady: ({ msg }) => msg === 'the export worker is ready',
  });
  return opened;
}

type Scene = {
  readonly storm: ExportStorm;
  readonly ask: Ask;
  readonly source: Source;
  readonly platform: StormProcess;
  readonly workers: readonly KilledProgram[];
  readonly storage: KilledProgram;
  readonly caps: CapsWatch;
};

/** Kills, and goes on until all exports have ended. */
async function load(scene: Scene): Promise<void> {
  const { storm, ask } = scene;
  const random = createRandom(storm.seed);
  const destination = await destinationOf(ask);
  for (let nth = 1; nth <= storm.kills; nth += 1) {
    const known = (await ask('GET', EXPORTS)) as readonly ExportRecord[];
    const alive = known.filter(({ status }) => !FINAL.has(status)).length;
    for (let at = alive; at < ALIVE; at += 1) await addExport(scene, destination, known.length + at);
    await delay(LEAST_PAUSE_MS + random(MOST_PAUSE_MS - LEAST_PAUSE_MS));
    storm.onKill?.(nth, await killOne(scene, random), known.length);
  }
  await ended(ask);
}

async function killOne({ platform, workers, storage }: Scene, random: Random): Promise<string> {
  const choice = random(10);
  if (choice < 2) {
    await platform.kill(false);
    return 'platform';
  }
  const victim = choice < 4 ? storage : workers[choice % workers.length];
  await victim?.kill();
  return victim?.name ?? '';
}

type ExportRecord = { readonly id: string; readonly status: string };

async function addDestination(ask: Ask, endpoint: string): Promise<void> {
  await ask('POST', `${EXPORTS}/destinations`, {
    ...{ destination_type: 's3', display_name: 'storm' },
    config: { bucket_name: 'traces', prefix: 'exports', endpoint_url: endpoint, region: 'us-east-1' },
    credentials: { access_key_id: 'AKIAEXAMPLE', secret_access_key: 'not-a-secret' },
  });
}

async function destinationOf(ask: Ask): Promise<string> {
  const found = (await ask('GET', `${EXPORTS}/destinations`)) as readonly { readonly id: string }[];
  return found[0]?.id ?? '';
}

async function addExport({ ask, source }: Scene, destination: string, nth: number): Promise<void> {
  await ask('POST', EXPORTS, {
    ...{ bulk_export_destination_id: destination, session_id: source.projectId },
    ...{ start_time: source.from, end_time: source.to },
    compression: COMPRESSIONS[nth % COMPRESSIONS.length],
    format_version: nth % 2 === 0 ? 'v1' : 'v2_beta',
  });
}

async function ended(ask: Ask): Promise<void> {
  const untilMs = performance.now() + MAX_END_MS;
  for (;;) {
    const known = (await ask('GET', EXPORTS)) as readonly ExportRecord[];
    if (known.every(({ status }) => FINAL.has(status)) || performance.now() > untilMs) return;
    await delay(LEAST_PAUSE_MS);
  }
}

type RunRecord = {
  readonly status: string;
  readonly retry_number: number;
  readonly start_time: string;
  readonly metadata: {
    readonly result: { readonly rows_written: number; readonly exported_files: readonly string[] } | null;
  };
};

type CountedRun = ExportedRun & { readonly retries: number };

async function readExports(
  ask: Ask,
): Promise<readonly (StormExport & { readonly runs: readonly CountedRun[] })[]> {
  const known = (await ask('GET', EXPORTS)) as readonly ExportRecord[];
  return Promise.all(
    known.map(async ({ id, status }) => {
      const runs = (await ask('GET', `${EXPORTS}/${id}/runs?limit=100`)) as readonly RunRecord[];
      return { id, status, runs: runs.map(toRun) };
    }),
  );
}

function toRun({ status, retry_number: retries, start_time, metadata: { result } }: RunRecord): CountedRun {
  const { rows_written: rowsWritten = 0, exported_files: files = [] } = result ?? {};
  return { status, retries, day: start_time.slice(0, 10), rowsWritten, files };
}

async function readStored(directory: string): Promise<Stored> {
  const objects = new StoredObjects(directory);
  const untilMs = performance.now() + MAX_CLEANUP_MS;
  while (objects.openUploads.length > 0 && performance.now() < untilMs) await delay(LEAST_PAUSE_MS);
  const files = new Map<string, readonly string[]>();
  for (const key of objects.keys.filter((one) => one.endsWith('.parquet')))
    files.set(key.replace('/traces/', ''), await idsIn(objects.find(key)?.content ?? Buffer.alloc(0)));
  return { files, openUploads: objects.openUploads.map(({ key }) => key) };
}

const compressors = {
  GZIP: (bytes: Uint8Array) => gunzipSync(bytes),
  ZSTD: (bytes: Uint8Array) => zstdDecompressSync(bytes),
};

async function idsIn(content: Buffer): Promise<readonly string[]> {
  const whole = Uint8Array.from(content).buffer;
  const file = { byteLength: whole.byteLength, slice: (from: number, to?: number) => whole.slice(from, to) };
  const rows = await parquetReadObjects({ file, compressors, columns: ['id'] });
  return rows.map((row) => String(row['id']));
}
