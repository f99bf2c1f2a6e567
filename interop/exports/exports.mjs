// Exports the traces of a platform to S3 servers that check signatures, and has pyarrow and DuckDB compare the files, row by row, with what
// the queries of the platform give. Ends with 1 when something was not as expected.
//
//   node exports.mjs PYTHON
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import dns from 'node:dns';
import { writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { createScratch } from '../../test/support/scratch.ts';
import { startTracePlatform } from '../traces/platform.mjs';
import { days, sendRuns } from './given-runs.mjs';
import { bucket, findPort, startServers, virtualDomain } from './s3-servers.mjs';

// Buckets in host names are on this machine: no resolver knows their domain.
const { lookup } = dns;
dns.lookup = (name, options, found) =>
  lookup(name.endsWith(`.${virtualDomain}`) || name === virtualDomain ? '127.0.0.1' : name, options, found);
syncBuiltinESMExports();
const { destinationConfig } = await import(
  '../../src/platform/bulk-export/destinations/destination-schema.ts'
);
const { testWrite } = await import('../../src/platform/bulk-export/destinations/test-write.ts');
const { exportRun } = await import('../../src/platform/bulk-export/files/run-export.ts');
const { noProgress } = await import('../../src/platform/bulk-export/files/run-progress.ts');
const { Secret } = await import('../../src/base/secret.ts');
const { openDatabase } = await import('../../src/platform/store/database.ts');
const { createRunPages } = await import('../../src/platform/traces/queries/run-pages.ts');
const { postgresTraceStore } = await import('../../src/platform/traces/store/postgres-trace-store.ts');

const [, , python] = process.argv;
const cache = join(import.meta.dirname, '..', '..', 'node_modules', '.cache');
const addresses = { allowAllPrivate: false, allowLoopback: true, allowCidrs: [], isOwnListener: () => false };
let failed = 0;

function check(isTrue, what, details = '') {
  console.log(`${isTrue ? 'ok  ' : 'FAIL'}  ${what}`);
  if (isTrue) return;
  failed += 1;
  if (details !== '') console.log(String(details).replaceAll(/^/gm, '      '));
}

const toCredentials = ({ accessKeyId, secretAccessKey, sessionToken }) => ({
  ...{ accessKeyId, secretAccessKey: new Secret(secretAccessKey) },
  sessionToken: sessionToken === undefined ? undefined : new Secret(sessionToken),
});
const configOf = (server, more = {}) =>
  destinationConfig.parse({
    bucket_name: bucket,
    endpoint_url: server.endpoint,
    region: 'us-east-1',
    prefix: 'all',
    ...more,
  });

/** The days of an export; resolves with what is left of each of them. */
async function exportDays(
  source,
  server,
  { credentials = toCredentials(server.full), config = {}, limits = {}, ...more } = {},
) {
  const exportId = randomUUID();
  const left = [];
  for (const day of days) {
    let progress = noProgress;
    await exportRun(
      {
        ...{ workspaceId: source.workspaceId, projectId: source.projectId, exportId, runId: randomUUID() },
        ...{ window: { from: `${day}T00:00:00Z`, to: new Date(Date.parse(day) + 86_400_000).toISOString() } },
        ...{ compression: 'zstd', formatVersion: 'v2_beta', ...more },
        destination: { config: configOf(server, config), credentials, addresses },
      },
      {
        ...{
          traces: createRunPages(postgresTraceStore),
          db: source.db,
          cancelBy: source.db,
          signal: new AbortController().signal,
          limits,
        },
        checkpoints: {
          load: async () => progress,
          beginUpload: async () => undefined,
          commitFile: async (next) => void (progress = next),
        },
      },
    );
    left.push(progress);
  }
  return {
    exportId,
    files: left.flatMap(({ files }) => files),
    rows: left.reduce((sum, { rows }) => sum + rows, 0),
  };
}

const errorOf = (work) =>
  work.then(
    () => 'no error',
    (error) => error.message,
  );

/** Each condition as a test write and as a run of an export see it. */
async function checkConditions(source, server) {
  const { full } = server;
  const wrongSecret = toCredentials({ ...full, secretAccessKey: 'wrong-secret-wrong-secret-wrong-secret' });
  const wrongKey = toCredentials({ ...full, accessKeyId: 'AKIANOSUCHKEYNOSUCHK' });
  const closed = { endpoint_url: `http://127.0.0.1:${await findPort()}` };
  const rows = [
    ['Access denied', { credentials: wrongSecret }],
    ['Key ID you provided does not exist', { credentials: wrongKey }],
    ['Bucket is not valid', { config: { bucket_name: 'no-such-bucket-anywhere' } }],
    // That of moto looks no further than for the bucket.
    [
      server.checksNames ? 'InvalidBucketName' : 'Bucket is not valid',
      { config: { bucket_name: 'Not_A_Bucket' } },
    ],
    ['Invalid endpoint', { config: closed }],
  ];
  for (const [condition, { credentials = toCredentials(full), config = {} }] of rows) {
    const settings = { addresses, testFile: 'bucket' };
    const tested = await errorOf(
      testWrite(configOf(server, config), credentials, settings, new AbortController().signal),
    );
    check(tested.startsWith(condition), `${server.name}: ${condition}, by a test write`, tested);
    const exported = await errorOf(exportDays(source, server, { credentials, config }));
    // What cannot be reached may be reached later.
    const expected = condition === 'Invalid endpoint' ? 'The storage cannot be reached' : condition;
    check(exported.startsWith(expected), `${server.name}: ${condition}, by a run`, exported);
  }
}

async function checkWays(source, server) {
  const count = source.rows.length;
  const ways = [
    ['path', { config: { config_kwargs_s3: { addressing_style: 'path' } } }],
    ['auto', { config: { config_kwargs_s3: { addressing_style: 'auto' } } }],
    [
      'bucket in the endpoint',
      { config: { endpoint_url: `${server.endpoint}/${bucket}`, include_bucket_in_prefix: false } },
    ],
    ...(server.virtual === undefined
      ? []
      : [
          [
            'virtual',
            { config: { endpoint_url: server.virtual, config_kwargs_s3: { addressing_style: 'virtual' } } },
          ],
        ]),
    ...(server.session === undefined
      ? []
      : [['with a session token', { credentials: toCredentials(server.session) }]]),
    ...(server.putOnly === undefined
      ? []
      : [['with rights to put alone', { credentials: toCredentials(server.putOnly) }]]),
  ];
  for (const [way, options] of ways) {
    const done = await exportDays(source, server, { ...options, compression: 'none' }).catch(
      (error) => error,
    );
    check(
      done.rows === count,
      `${server.name}: ${way}: ${count} rows, also in parts`,
      done.stack ?? JSON.stringify(done),
    );
  }
  process.env.AWS_ACCESS_KEY_ID = server.full.accessKeyId;
  process.env.AWS_SECRET_ACCESS_KEY = server.full.secretAccessKey;
  const done = await exportDays(source, server, { credentials: undefined }).catch((error) => error);
  check(done.rows === count, `${server.name}: with the credentials of the environment`, done.stack ?? '');
  delete process.env.AWS_ACCESS_KEY_ID;
  delete process.env.AWS_SECRET_ACCESS_KEY;
}

function readFiles(server, { exportId, formatVersion, compression }, expectedFile) {
  const folder = join(server.data, 'all', `export_id=${exportId}`);
  const args = [join(import.meta.dirname, 'readers.py'), folder, expectedFile, formatVersion, compression];
  const { stdout, stderr } = spawnSync(python, args, { encoding: 'utf8', maxBuffer: 1e8 });
  return stdout === '' ? { failed: [stderr] } : JSON.parse(stdout);
}

async function checkReaders(source, server, folder) {
  const limits = { pageRows: 40, groupRows: 20, fileRows: 60 };
  const expect = async (name, rows) => {
    const file = join(folder, name);
    await writeFile(file, JSON.stringify({ workspaceId: source.workspaceId, rows }));
    return file;
  };
  const expected = await expect('expected.json', source.rows);
  let exported;
  for (const formatVersion of ['v1', 'v2_beta'])
    for (const compression of ['none', 'gzip', 'snappy', 'zstd']) {
      const { exportId } = await exportDays(source, server, { formatVersion, compression, limits });
      exported = { exportId, formatVersion, compression };
      const read = readFiles(server, exported, expected);
      const what = `${formatVersion}, ${compression}: ${read.files} files and ${read.rows} rows by ${read.versions}`;
      check(read.failed.length === 0, what, read.failed.join('\n'));
    }
  const other = source.rows.map((run, at) => (at === 100 ? { ...run, total_tokens: 1 } : run));
  const { failed: seen } = readFiles(server, exported, await expect('other.json', other));
  check(seen.length === 2, 'both readers see a value that is another', seen.join('\n'));
}

await using cleanup = new AsyncDisposableStack();
const { path: folder } = cleanup.use(await createScratch());
const servers = await startServers(cleanup, { python, folder, cache });
const platform = await startTracePlatform(cleanup);
const database = openDatabase({
  connection: platform.connection,
  maxConnections: 4,
  onError: () => undefined,
});
cleanup.defer(() => database.close());
const source = { ...(await sendRuns(platform)), db: database.db };
const [readable] = servers.filter(({ data }) => data !== undefined);
if (readable === undefined) check(false, 'the readers need the files of versitygw');
else await checkReaders(source, readable, folder);
for (const server of servers) {
  await checkWays(source, server);
  await checkConditions(source, server);
}
if (failed > 0) {
  console.error(`${failed} checks failed`);
  process.exitCode = 1;
}
