import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { z } from '../../../src/base/schema.ts';
import { connectOnce } from '../../../src/platform/store/database.ts';
import { defineJob, type Exhausted, type Job } from '../../../src/platform/store/job.ts';
import { JOBS_SCHEMA_VERSION, type Jobs, openJobs } from '../../../src/platform/store/jobs.ts';
import { hasDebianPostgres } from '../../support/debian-postgres.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { projectRoot, SpawnedProcess } from '../../support/spawned-process.ts';

const hasDebian = await hasDebianPostgres();

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

async function openDatabase(server: 'embedded' | 'debian' = 'embedded'): Promise<TestDatabase> {
  const database = await createTestDatabase({ server });
  open.push(database);
  return database;
}

type Started = Jobs & { readonly logged: readonly Readonly<Record<string, unknown>>[] };

async function startJobs(
  { connection, store }: TestDatabase,
  jobs: readonly Job[],
  { works = true }: { readonly works?: boolean } = {},
): Promise<Started> {
  const logged: Readonly<Record<string, unknown>>[] = [];
  const log = createLog('info', { write: (line) => void logged.push(JSON.parse(line)) });
  const options = { connection, maxConnections: 2, onError: () => undefined };
  const opened = await openJobs({ ...options, log, jobs, store: works ? store : undefined });
  let isOpen = true;
  const close = async (timeoutMs?: number): Promise<void> => {
    if (isOpen) await opened.close(timeoutMs);
    isOpen = false;
  };
  open.push({ [Symbol.asyncDispose]: () => close(1000) });
  await opened.work();
  return { ...opened, close, logged };
}

const anything = z.looseObject({});
const limits = { retries: 5, delaySeconds: 1, timeoutSeconds: 900 };

/** Stored by another version, which has another schema. */
async function sendAsOther(
  database: TestDatabase,
  name: string,
  data: Record<string, unknown>,
): Promise<void> {
  const other = defineJob({ ...limits, name, data: anything, run: async () => undefined });
  const jobs = await startJobs(database, [other], { works: false });
  await database.store.write((trx) => jobs.send(trx, other, data));
  await jobs.close();
}

describe.each([
  ['the embedded server', 'embedded', true],
  ['PostgreSQL 15', 'debian', hasDebian],
] as const)('jobs on %s', (_, server, isInstalled) => {
  const tags = server === 'debian' ? ['long'] : [];
  describe.runIf(isInstalled)('a job', { tags }, () => {
    it('runs once the transaction that sent it commits, and never when that is rolled back', async () => {
      const database = await openDatabase(server);
      const { promise, resolve } = Promise.withResolvers<string>();
      const greet = defineJob({
        ...limits,
        name: 'greet',
        data: z.strictObject({ to: z.string(), from: z.string().default('us') }),
        run: async ({ to, from }) => resolve(`${from} to ${to}`),
      });
      const jobs = await startJobs(database, [greet]);
      const rolledBack = database.store.write(async (trx) => {
        await jobs.send(trx, greet, { to: 'nobody' });
        throw new Error('rolled back');
      });
      await expect(rolledBack).rejects.toThrow('rolled back');
      await database.store.write((trx) => jobs.send(trx, greet, { to: 'Ada' }));
      expect(await promise).toEqual('us to Ada');
    });

    it('sends what follows it', async () => {
      const database = await openDatabase(server);
      const { promise, resolve } = Promise.withResolvers<number>();
      const second = defineJob({
        ...limits,
        name: 'second',
        data: z.strictObject({ n: z.int() }),
        run: async ({ n }) => resolve(n),
      });
      const first = defineJob({
        ...limits,
        name: 'first',
        data: anything,
        run: (_data, { store, send }) => store.write((trx) => send(trx, second, { n: 7 })),
      });
      const { send } = await startJobs(database, [first, second]);
      await database.store.write((trx) => send(trx, first, {}));
      expect(await promise).toBe(7);
    });

    it('runs again within 15 s after its process was killed', { tags: ['long'] }, async () => {
      const database = await openDatabase(server);
      await using stuck = startStuckWorker(database, 'slow', 5);
      await stuck.record((record) => record['msg'] === 'working');
      const { promise, resolve } = Promise.withResolvers<string>();
      const slow = defineJob({
        ...limits,
        name: 'slow',
        data: anything,
        run: async (__, { id }) => resolve(id),
      });
      const sender = await startJobs(database, [slow], { works: false });
      await database.store.write((trx) => sender.send(trx, slow, { number: 1 }));
      const taken = await stuck.record((record) => record['msg'] === 'taken');
      await startJobs(database, [slow]);
      stuck.kill('SIGKILL');
      const killedMs = performance.now();
      expect(await promise).toBe(taken['id']);
      const tookMs = performance.now() - killedMs;
      console.log(`run again after ${Math.round(tookMs)} ms`);
      expect(tookMs).toBeLessThan(15_000);
    });

    it('is given up when its process was killed in the last attempt', { tags: ['long'] }, async () => {
      const database = await openDatabase(server);
      await using stuck = startStuckWorker(database, 'doomed', 0);
      await stuck.record((record) => record['msg'] === 'working');
      const { promise, resolve } = Promise.withResolvers<readonly [Exhausted<object>, string]>();
      const doomed = defineJob({
        ...limits,
        name: 'doomed',
        data: anything,
        retries: 0,
        run: async () => resolve([{ reason: 'data', data: 'ran again' }, '']),
        onExhausted: async (exhausted, { id }) => resolve([exhausted, id]),
      });
      const sender = await startJobs(database, [doomed], { works: false });
      await database.store.write((trx) => sender.send(trx, doomed, { number: 1 }));
      const taken = await stuck.record((record) => record['msg'] === 'taken');
      await startJobs(database, [doomed]);
      stuck.kill('SIGKILL');
      expect(await promise).toEqual([{ reason: 'retries', data: { number: 1 } }, taken['id']]);
    });

    it('is retried after a failure, and every failure is logged', { tags: ['long'] }, async () => {
      const database = await openDatabase(server);
      const { promise, resolve } = Promise.withResolvers<void>();
      let attempts = 0;
      const flaky = defineJob({
        ...limits,
        name: 'flaky',
        data: anything,
        async run() {
          attempts += 1;
          if (attempts < 3) throw Object.assign(new Error('hush'), { code: 'E_YET' });
          resolve();
        },
      });
      const { send, logged } = await startJobs(database, [flaky]);
      await database.store.write((trx) => send(trx, flaky, {}));
      await promise;
      expect(attempts).toBe(3);
      const line = expect.objectContaining({
        queue: 'flaky',
        error: 'Error',
        code: 'E_YET',
        msg: 'a job failed',
      });
      expect(logged).toEqual([line, line]);
      expect(JSON.stringify(logged)).not.toContain('hush');
    });

    it('may finish before the process ends', async () => {
      const database = await openDatabase(server);
      const taken = Promise.withResolvers<void>();
      const mayEnd = Promise.withResolvers<void>();
      let hasEnded = false;
      const long = defineJob({
        ...limits,
        name: 'long',
        data: anything,
        async run() {
          taken.resolve();
          await mayEnd.promise;
          hasEnded = true;
        },
      });
      const jobs = await startJobs(database, [long]);
      await database.store.write((trx) => jobs.send(trx, long, {}));
      await taken.promise;
      const closed = jobs.close();
      mayEnd.resolve();
      await closed;
      expect(hasEnded).toBe(true);
    });
  });

  it.runIf(isInstalled)(
    'are scheduled once, even when several processes schedule them',
    { tags },
    async () => {
      const database = await openDatabase(server);
      const scheduled = { ...limits, data: anything, run: async () => undefined };
      const nightly = defineJob({
        ...scheduled,
        name: 'nightly',
        schedule: { cron: '17 3 * * *', data: { a: 1 } },
      });
      const often = defineJob({ ...scheduled, name: 'often', schedule: { everyMinutes: 5, data: {} } });
      await startJobs(database, [nightly, often]);
      await startJobs(database, [nightly, often]);
      const { rows } = await connectOnce(database.ownerConnection, (client) =>
        client.query('select name, cron, timezone, data from pgboss.schedule order by name'),
      );
      expect(rows).toEqual([
        { name: 'nightly', cron: '17 3 * * *', timezone: 'UTC', data: { a: 1 } },
        { name: 'often', cron: '*/5 * * * *', timezone: 'UTC', data: {} },
      ]);
      await startJobs(database, [defineJob({ ...scheduled, name: 'nightly' })]);
      const left = await connectOnce(database.ownerConnection, (client) =>
        client.query('select name from pgboss.schedule'),
      );
      expect(left.rows).toEqual([{ name: 'often' }]);
    },
  );
});

describe('a job that cannot be done', () => {
  it('is given up once, after its retries; what follows it is retried itself', { tags: 'long' }, async () => {
    const database = await openDatabase();
    const given: Exhausted<{ n: number }>[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    let attempts = 0;
    const hopeless = defineJob({
      ...limits,
      name: 'hopeless',
      data: z.strictObject({ n: z.int() }),
      retries: 1,
      delaySeconds: 0,
      async run() {
        attempts += 1;
        throw new Error('no');
      },
      async onExhausted(exhausted) {
        given.push(exhausted);
        resolve();
      },
    });
    const { send, logged } = await startJobs(database, [hopeless]);
    await database.store.write((trx) => send(trx, hopeless, { n: 7 }));
    await promise;
    expect([attempts, given]).toEqual([2, [{ reason: 'retries', data: { n: 7 } }]]);
    await expect.poll(() => logged.at(-1)).toMatchObject({ msg: 'a job was given up', reason: 'retries' });
  });

  it('is given up at once when another version stored data that does not fit', async () => {
    const database = await openDatabase();
    await sendAsOther(database, 'changed', { old: 'shape', secret: 'hush' });
    const { promise, resolve } = Promise.withResolvers<unknown>();
    let attempts = 0;
    const changed = defineJob({
      ...limits,
      name: 'changed',
      data: z.object({ id: z.string() }),
      run: async () => void (attempts += 1),
      onExhausted: async (exhausted) => resolve(exhausted),
    });
    const { logged } = await startJobs(database, [changed]);
    expect(await promise).toEqual({ reason: 'data', data: { old: 'shape', secret: 'hush' } });
    expect(attempts).toBe(0);
    expect(logged[0]).toMatchObject({
      queue: 'changed',
      fields: ['id'],
      msg: 'a job has data that this version cannot read',
    });
    expect(JSON.stringify(logged)).not.toContain('hush');
  });

  it('and belongs to another version is left to that version', async () => {
    const database = await openDatabase();
    const { logged } = await startJobs(database, []);
    const id = '11111111-1111-4111-8111-111111111111';
    await connectOnce(database.ownerConnection, (client) =>
      client.query(`insert into pgboss.job (name, data, source_name, source_id, retry_limit)
        values ('exhausted-jobs', '{}', 'newer', '${id}', 5)`),
    );
    await expect
      .poll(() => logged, { timeout: 20_000 })
      .toContainEqual(expect.objectContaining({ level: 'warn', queue: 'newer', job: id }));
    const state = (): Promise<unknown> =>
      connectOnce(database.ownerConnection, async (client) => {
        const { rows } = await client.query(`select state from pgboss.job where name = 'exhausted-jobs'`);
        return rows;
      });
    await expect.poll(state, { timeout: 20_000 }).toEqual([{ state: 'retry' }]);
  });

  it('hears of its timeout by the signal', async () => {
    const database = await openDatabase();
    const { promise, resolve } = Promise.withResolvers<string>();
    const endless = defineJob({
      ...limits,
      name: 'endless',
      data: anything,
      retries: 0,
      timeoutSeconds: 1,
      run: (_, { signal }) =>
        new Promise((end) => {
          signal.addEventListener('abort', () => end());
        }),
      onExhausted: async ({ reason }) => resolve(reason),
    });
    const { send } = await startJobs(database, [endless]);
    await database.store.write((trx) => send(trx, endless, {}));
    expect(await promise).toBe('retries');
  });
});

describe('a process that only sends jobs', () => {
  it('creates their queues, and runs none', async () => {
    const database = await openDatabase();
    let isTaken = false;
    const job = defineJob({
      ...limits,
      name: 'elsewhere',
      data: anything,
      schedule: { cron: '* * * * *', data: {} },
      run: async () => void (isTaken = true),
    });
    const jobs = await startJobs(database, [job], { works: false });
    await database.store.write((trx) => jobs.send(trx, job, {}));
    await jobs.close();
    expect(isTaken).toBe(false);
    const { rows } = await connectOnce(database.ownerConnection, (client) =>
      client.query(`select state, (select count(*)::int from pgboss.schedule) as schedules from pgboss.job`),
    );
    expect(rows).toEqual([{ state: 'created', schedules: 0 }]);
  });

  it('rejects data that does not fit, and names the field without its value', async () => {
    const database = await openDatabase();
    const data = z.strictObject({ at: z.strictObject({ path: z.string() }) });
    const job = defineJob({ ...limits, name: 'strict', data, run: async () => undefined });
    const { send } = await startJobs(database, [job], { works: false });
    const wrong = { at: { path: 12_345 } } as unknown as { at: { path: string } };
    await expect(database.store.write((trx) => send(trx, job, wrong))).rejects.toThrow(
      'The job strict was sent data that does not fit: at.path',
    );
  });
});

describe('the queues', () => {
  it('of an earlier version get the settings of this one', async () => {
    const database = await openDatabase();
    const job = { ...limits, name: 'tuned', data: anything, run: async () => undefined };
    await startJobs(database, [defineJob(job)], { works: false });
    await startJobs(database, [defineJob({ ...job, retries: 9, timeoutSeconds: 60 })], { works: false });
    const { rows } = await connectOnce(database.ownerConnection, (client) =>
      client.query(`select retry_limit, expire_seconds, dead_letter from pgboss.queue where name = 'tuned'`),
    );
    expect(rows).toEqual([{ retry_limit: 9, expire_seconds: 60, dead_letter: 'exhausted-jobs' }]);
  });

  it('are not shared by two jobs', async () => {
    const database = await openDatabase();
    const job = defineJob({ ...limits, name: 'same', data: anything, run: async () => undefined });
    await expect(startJobs(database, [job, job])).rejects.toThrow('Two jobs have the name same');
  });

  it('have the schema that is known without loading pg-boss', () => {
    const file = join(projectRoot, 'node_modules/pg-boss/package.json');
    expect(JSON.parse(readFileSync(file, 'utf8')).pgboss.schema).toBe(JOBS_SCHEMA_VERSION);
  });
});

function startStuckWorker({ connection }: TestDatabase, name: string, retries: number): SpawnedProcess {
  return new SpawnedProcess(process.execPath, [
    join(projectRoot, 'test/support/stuck-worker.ts'),
    JSON.stringify(connection),
    name,
    String(retries),
  ]);
}
