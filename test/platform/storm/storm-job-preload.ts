// Loaded before a platform process of a storm: takes jobs from a queue of the storm with the code of the platform. Each
// job runs until SIGUSR2 ends the storm, and reports its start and its end on standard output.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { parseConnections } from '../../../src/platform/store/connection.ts';
import { type Connection, openDatabase } from '../../../src/platform/store/database.ts';
import { createLog } from '../../../src/base/log.ts';
import { z } from '../../../src/base/schema.ts';
import { defineJob } from '../../../src/platform/store/job.ts';
import { type Jobs, openJobs } from '../../../src/platform/store/jobs.ts';

const MAX_WAIT_MS = 30_000;
const stormEnd = new AbortController();
/** Only the first process sends jobs. */
const count = Number(process.env['STORM_JOBS'] ?? '0');
const concurrency = Number(process.env['STORM_JOBS_AT_ONCE'] ?? '1');

const stormJob = defineJob({
  name: 'storm',
  data: z.strictObject({ job: z.string() }),
  retries: 10_000,
  delaySeconds: 1,
  timeoutSeconds: 900,
  concurrency,
  async run({ job }, { signal }) {
    report({ msg: 'storm job', job, what: 'started' });
    if (!stormEnd.signal.aborted)
      await Promise.race([
        once(stormEnd.signal, 'abort'),
        once(signal, 'abort').then(() => signal.throwIfAborted()),
      ]);
    report({ msg: 'storm job', job, what: 'done' });
  },
});

process.on('SIGUSR2', () => stormEnd.abort());
// The platform replaces itself to remove secrets from its environment, and then loads this file again.
if (process.env['DATABASE_URL'] === undefined)
  void takeJobs(connectionOf(process.env['STORM_DATABASE_URL'] ?? ''));

function connectionOf(value: string): Connection {
  const parsed = parseConnections({ name: 'STORM_DATABASE_URL', value });
  if (!parsed.ok) throw new Error('STORM_DATABASE_URL is missing');
  return parsed.value.connection;
}

async function takeJobs(connection: Connection): Promise<void> {
  const jobs = await openWhenMigrated(connection);
  await jobs.work();
  await sendJobs(connection, jobs);
  process.once('SIGTERM', () => void jobs.close());
}

async function sendJobs(connection: Connection, jobs: Jobs): Promise<void> {
  if (count === 0) return;
  const store = openDatabase({ connection, maxConnections: 1, onError: () => undefined });
  await store.write(async (trx) => {
    for (let i = 1; i <= count; i += 1) await jobs.send(trx, stormJob, { job: `j${i}` });
  });
  await store.close();
  report({ msg: 'storm jobs sent' });
}

/** The platform creates the schema after this file was loaded. */
async function openWhenMigrated(connection: Connection): Promise<Jobs> {
  const untilMs = performance.now() + MAX_WAIT_MS;
  const database = { connection, maxConnections: 4, onError: () => undefined };
  const log = createLog('warn', { write: logError });
  const options = { ...database, log, jobs: [stormJob], store: openDatabase(database) };
  for (;;) {
    try {
      return await openJobs(options);
    } catch (error) {
      if (performance.now() > untilMs) throw error;
    }
    await delay(100);
  }
}

function logError(line: string): void {
  report({ level: 'error', msg: 'storm jobs failed', details: line });
}

function report(record: object): void {
  process.stdout.write(`${JSON.stringify({ ...record, at: Date.now() })}\n`);
}
