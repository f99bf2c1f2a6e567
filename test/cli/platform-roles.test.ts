// `sallyport platform` with a role, as real processes on one database: one serves, one works; and without the rights of
// the owner, once `migrate` has run.
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sandboxRecords } from '../../src/platform/sandbox-records/module.ts';
import { connectOnce } from '../../src/platform/store/database.ts';
import { openJobs } from '../../src/platform/store/jobs.ts';
import { createLog } from '../../src/base/log.ts';
import { createTestDatabase, type TestDatabase } from '../support/platform-database.ts';
import { runSallyport, startPlatform } from '../support/platform-process.ts';
import { createScratch } from '../support/scratch.ts';
import type { LogRecord, SpawnedProcess } from '../support/spawned-process.ts';

const SLOW = { timeout: 180_000 };

async function createDirectory(): Promise<string> {
  const scratch = await createScratch();
  onTestFinished(() => scratch[Symbol.asyncDispose]());
  await chmod(scratch.path, 0o755);
  return join(scratch.path, 'data');
}

async function start(
  role: string,
  database: TestDatabase,
  dataDirectory: string,
): Promise<{ readonly process: SpawnedProcess; readonly record: LogRecord }> {
  const env = { SALLYPORT_PLATFORM_ROLE: role, SALLYPORT_PLATFORM_METRICS_LISTEN: '127.0.0.1:0' };
  const platform = startPlatform({ dataDirectory, database, env });
  onTestFinished(() => platform[Symbol.asyncDispose]());
  const record = await platform.process.record(({ msg }) => msg === 'ready');
  return { process: platform.process, record };
}

/** As a route would, in a process that runs no jobs. */
async function sendExpiry({ connection, store }: TestDatabase): Promise<void> {
  const log = createLog('silent', { write: () => undefined });
  const [job, ...others] = sandboxRecords.jobs ?? [];
  if (job === undefined || others.length > 0) throw new Error('the module has another number of jobs');
  const jobs = await openJobs({
    ...{ connection, maxConnections: 1, onError: () => undefined },
    ...{ log, jobs: [job] },
  });
  await store.write((trx) => jobs.send(trx, job, {}));
  await jobs.close();
}

const isExpiry = ({ msg }: LogRecord): boolean => msg === 'sandbox records expired';

async function statusOf(url: unknown): Promise<number> {
  return (await fetch(String(url))).status;
}

describe('a platform of two processes', SLOW, () => {
  it('serves in one and works in the other, which drains its jobs', async () => {
    await using database = await createTestDatabase();
    const dataDirectory = await createDirectory();
    const serving = await start('serve', database, dataDirectory);
    expect(serving.record).toMatchObject({ role: 'serve', api: expect.stringContaining('http://') });
    expect(await statusOf(`${String(serving.record['api'])}/ok`)).toBe(200);
    await sendExpiry(database);

    const working = await start('work', database, dataDirectory);
    expect(working.record).toMatchObject({ role: 'work' });
    expect(working.record).not.toHaveProperty('api');
    const metrics = String(working.record['metrics']);
    expect([await statusOf(`${metrics}/ok`), await statusOf(`${metrics}/metrics`)]).toEqual([200, 200]);
    await working.process.record(isExpiry);
    expect(serving.process.records.filter(isExpiry)).toEqual([]);

    await connectOnce(database.ownerConnection, async (other) => {
      await other.query('begin; lock table sandbox_records');
      await sendExpiry(database);
      const waiting = "select from pg_locks where relation = 'sandbox_records'::regclass and not granted";
      await expect.poll(async () => (await other.query(waiting)).rowCount, { timeout: 30_000 }).toBe(1);
      working.process.kill('SIGTERM');
      await working.process.record(({ msg }) => msg === 'draining');
      expect(await statusOf(`${metrics}/ok`)).toBe(503);
      await other.query('commit');
    });
    expect(await working.process.exited).toEqual({ code: 0, signal: null });
    expect(working.process.records.filter(isExpiry)).toHaveLength(2);
    serving.process.kill('SIGTERM');
    expect(await serving.process.exited).toEqual({ code: 0, signal: null });
  });
});

describe('a platform without the rights of the owner', SLOW, () => {
  it('says which command migrates, and starts once that has run', async () => {
    await using database = await createTestDatabase({ isMigrated: false });
    const dataDirectory = await createDirectory();
    const env = { DATABASE_URL: database.url };
    const refused = await runSallyport(['platform'], { dataDirectory, env });
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringMatching(
        /may not change it: .+\. Run sallyport platform migrate with SALLYPORT_PLATFORM_DATABASE_OWNER_URL set to the URL of the owner of the tables/,
      ),
    ]);
    const migrated = await runSallyport(['platform', 'migrate'], { dataDirectory, database });
    expect([migrated.code, migrated.stdout]).toEqual([0, '']);
    expect(migrated.stderr).toMatch(
      /^The schema of the database is current: (\d+) migrations, \1 of them new\.\n$/,
    );
    const again = await runSallyport(['platform', 'migrate'], { dataDirectory, database });
    expect(again.stderr).toMatch(/ 0 of them new\.\n$/);

    await using platform = startPlatform({ dataDirectory, env });
    const { port } = await platform.ready;
    expect(await statusOf(`http://127.0.0.1:${port}/ok`)).toBe(200);
  });

  it('names an invalid role', async () => {
    const { code, stderr } = await runSallyport(['platform', '--role', 'rest'], {
      dataDirectory: await createDirectory(),
    });
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining("--role: Input must be 'serve' or 'work' or 'both'"),
    ]);
  });
});
