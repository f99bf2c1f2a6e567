import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { appendEvent } from '../../../src/platform/audit/journal.ts';
import { auditMaintenance } from '../../../src/platform/audit-maintenance/module.ts';
import type { Roles, RunningPart } from '../../../src/platform/module.ts';
import { modules } from '../../../src/platform/modules.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { createTestConfig, createTestWiring } from '../../support/test-wiring.ts';
import { entryOf } from '../audit/audit-entry.ts';

let database: TestDatabase;
let scratch: Scratch;
beforeAll(async () => {
  database = await createTestDatabase();
  scratch = await createScratch();
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
  await scratch[Symbol.asyncDispose]();
});

const both: Roles = { serves: true, works: true };

async function start(
  checkpoints: string,
  roles: Roles = both,
): Promise<{ readonly part: RunningPart | undefined; readonly logged: string[] }> {
  const logged: string[] = [];
  const part = await auditMaintenance.start?.({
    ...createTestWiring(),
    config: createTestConfig({
      audit: {
        checkpoints,
        key_file: join(scratch.path, 'keys', 'signing.key'),
        checkpoint_interval_ms: 60_000,
      },
    }),
    store: database.store,
    log: createLog('info', { write: (line) => void logged.push(line) }),
    roles,
    signal: new AbortController().signal,
    notifications: { subscribe: async () => () => undefined },
    program: [],
  });
  return { part, logged };
}

describe('the jobs of the modules', () => {
  it('expire events and records at night, and sessions every hour', async () => {
    const logged: string[] = [];
    const log = createLog('info', { write: (line) => void logged.push(line) });
    const jobs = modules.flatMap((module) => module.jobs ?? []);
    expect(jobs.map(({ name, schedule }) => [name, schedule])).toEqual([
      ['expire-audit-events', { cron: '17 3 * * *', data: {} }],
      ['remove-expired-sessions', { cron: '7 * * * *', data: {} }],
      ['trim-deployment-logs', { everyMinutes: 1, data: {} }],
      ['tidy-deployments', { everyMinutes: 10, data: {} }],
      ['expire-sandbox-records', { cron: '47 3 * * *', data: {} }],
      ['expire-sandboxes', { everyMinutes: 1, data: {} }],
      ['remove-traces', { everyMinutes: 1, data: {} }],
      ['place-feedback', { everyMinutes: 1, data: {} }],
      ['replace-trace-signing-keys', { cron: '23 2 * * *', data: {} }],
      ['expire-traces', { everyMinutes: 30, data: {} }],
      ['keep-exports', { everyMinutes: 1, data: {} }],
      ['remove-exports', { everyMinutes: 1, data: {} }],
    ]);
    const { signal } = new AbortController();
    const { send } = createTestWiring();
    for (const job of jobs) await job.run({}, { ...{ id: '1', signal, log }, store: database.store, send });
    expect(logged.join('')).toMatch(
      /"removed":0.*audit events expired[^]*"removed":0.*sandbox records expired/,
    );
  });
});

describe('signed checkpoints', () => {
  it('are written a last time at the end', async () => {
    const file = join(scratch.path, 'closed.jsonl');
    const { part } = await start(file);
    const organizationId = randomUUID();
    await database.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
    await part?.close();
    expect(await readFile(file, 'utf8')).toContain(organizationId);
  });

  it('of a sink that fails are logged, and written to the next one', async () => {
    const organizationId = randomUUID();
    await database.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
    const failing = await start(scratch.path);
    await failing.part?.close();
    expect(failing.logged.join('')).toMatch(/EISDIR.*checkpoints were not written/);
    const file = join(scratch.path, 'next.jsonl');
    await (await start(file)).part?.close();
    expect(await readFile(file, 'utf8')).toContain(organizationId);
  });

  it('are not written by a process that only serves, which needs no key', async () => {
    expect((await start('/nonexistent', { serves: true, works: false })).part).toBeUndefined();
  });
});
