import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { connectOnce } from '../../../src/platform/store/database.ts';
import { type Jobs, openJobs } from '../../../src/platform/store/jobs.ts';
import { hasDebianPostgres } from '../../support/debian-postgres.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { projectRoot, SpawnedProcess } from '../../support/spawned-process.ts';

const hasDebian = await hasDebianPostgres();

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

async function openDatabase(server: 'embedded' | 'debian'): Promise<TestDatabase> {
  const database = await createTestDatabase({ server });
  open.push(database);
  return database;
}

async function startJobs({ connection }: TestDatabase, reported: unknown[] = []): Promise<Jobs> {
  const log = { warn: () => undefined, error: (...line: unknown[]) => void reported.push(line) };
  const jobs = await openJobs({ connection, maxConnections: 2, onError: () => undefined, log });
  let isOpen = true;
  const close = async (timeoutMs?: number): Promise<void> => {
    if (isOpen) await jobs.close(timeoutMs);
    isOpen = false;
  };
  open.push({ [Symbol.asyncDispose]: () => close(1000) });
  return { ...jobs, close };
}

describe.each([
  ['the embedded server', 'embedded', true],
  ['PostgreSQL 15', 'debian', hasDebian],
] as const)('jobs on %s', (_, server, isInstalled) => {
  const tags = server === 'debian' ? ['long'] : [];
  describe.runIf(isInstalled)('a job', { tags }, () => {
    it('runs once the transaction that sent it commits, and never when that is rolled back', async () => {
      const database = await openDatabase(server);
      const jobs = await startJobs(database);
      const { promise, resolve } = Promise.withResolvers<unknown>();
      await jobs.work('greet', async (data) => resolve(data));
      const rolledBack = database.store.write(async (trx) => {
        await jobs.send(trx, 'greet', { to: 'nobody' });
        throw new Error('rolled back');
      });
      await expect(rolledBack).rejects.toThrow('rolled back');
      await database.store.write((trx) => jobs.send(trx, 'greet', { to: 'Ada' }));
      expect(await promise).toEqual({ to: 'Ada' });
    });

    it('runs again within 15 s after its process was killed', { tags: ['long'] }, async () => {
      const database = await openDatabase(server);
      await using stuck = new SpawnedProcess(process.execPath, [
        join(projectRoot, 'test/support/stuck-worker.ts'),
        JSON.stringify(database.connection),
        'slow',
      ]);
      await stuck.record((record) => record['msg'] === 'working');
      const jobs = await startJobs(database);
      await database.store.write((trx) => jobs.send(trx, 'slow', { number: 1 }));
      const taken = await stuck.record((record) => record['msg'] === 'taken');
      const { promise, resolve } = Promise.withResolvers<string>();
      await jobs.work('slow', async (__, { id }) => resolve(id));
      stuck.kill('SIGKILL');
      const killedMs = performance.now();
      expect(await promise).toBe(taken['id']);
      const tookMs = performance.now() - killedMs;
      console.log(`run again after ${Math.round(tookMs)} ms`);
      expect(tookMs).toBeLessThan(15_000);
    });

    it('is retried after a failure, and every failure is logged', { tags: ['long'] }, async () => {
      const database = await openDatabase(server);
      const reported: unknown[] = [];
      const jobs = await startJobs(database, reported);
      const { promise, resolve } = Promise.withResolvers<void>();
      let attempts = 0;
      await jobs.work('flaky', async () => {
        attempts += 1;
        if (attempts < 3) throw Object.assign(new Error('hush'), { code: 'E_YET' });
        resolve();
      });
      await database.store.write((trx) => jobs.send(trx, 'flaky', {}));
      await promise;
      expect(attempts).toBe(3);
      const line = [
        expect.objectContaining({ queue: 'flaky', error: 'Error', code: 'E_YET' }),
        'a job failed',
      ];
      expect(reported).toEqual([line, line]);
      expect(JSON.stringify(reported)).not.toContain('hush');
    });

    it('may finish before the process ends', async () => {
      const database = await openDatabase(server);
      const jobs = await startJobs(database);
      const taken = Promise.withResolvers<void>();
      const mayEnd = Promise.withResolvers<void>();
      let hasEnded = false;
      await jobs.work('long', async () => {
        taken.resolve();
        await mayEnd.promise;
        hasEnded = true;
      });
      await database.store.write((trx) => jobs.send(trx, 'long', {}));
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
      for (const jobs of [await startJobs(database), await startJobs(database)]) {
        await jobs.work('nightly', async () => undefined);
        await jobs.schedule('nightly', '17 3 * * *');
      }
      const { rows } = await connectOnce(database.ownerConnection, (client) =>
        client.query('select name, cron, timezone from pgboss.schedule'),
      );
      expect(rows).toEqual([{ name: 'nightly', cron: '17 3 * * *', timezone: 'UTC' }]);
    },
  );
});
