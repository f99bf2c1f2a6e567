import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { appendEvent } from '../../src/platform/audit/journal.ts';
import { type BackgroundTasks, startBackgroundTasks } from '../../src/platform/background-tasks.ts';
import type { Jobs } from '../../src/platform/store/jobs.ts';
import { createTestDatabase, onePool, type TestDatabase } from '../support/platform-database.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { entryOf } from './audit/audit-entry.ts';

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

/** Queues that run no job by themselves. */
function createQueues(): Jobs & {
  readonly calls: string[];
  readonly handlers: Map<string, () => Promise<void>>;
} {
  const calls: string[] = [];
  const handlers = new Map<string, () => Promise<void>>();
  return {
    calls,
    handlers,
    async work(queue, handler) {
      handlers.set(queue, () => handler({}, { id: '1', signal: new AbortController().signal }));
    },
    send: async () => undefined,
    schedule: async (queue, cron) => void calls.push(`${queue} ${cron}`),
    close: async () => void calls.push('closed'),
  };
}

async function start(checkpoints: string): Promise<{
  readonly tasks: BackgroundTasks;
  readonly queues: ReturnType<typeof createQueues>;
  readonly logged: string[];
}> {
  const queues = createQueues();
  const logged: string[] = [];
  const log = createLog('info', { write: (line) => void logged.push(line) });
  const storage = {
    pools: onePool(database.store),
    kind: 'embedded' as const,
    ended: new Promise<void>(() => {}),
    openJobs: async () => queues,
    close: async () => {},
  };
  const audit = {
    checkpoints,
    keyFile: join(scratch.path, 'keys', 'signing.key'),
    checkpointIntervalMs: 60_000,
  };
  return { tasks: await startBackgroundTasks({ audit }, { storage, log }), queues, logged };
}

describe('background tasks', () => {
  it('schedule the expiry of events and records at night', async () => {
    const { tasks, queues, logged } = await start(join(scratch.path, 'scheduled.jsonl'));
    expect(queues.calls).toEqual(['expire-audit-events 17 3 * * *', 'expire-sandbox-records 47 3 * * *']);
    for (const handler of queues.handlers.values()) await handler();
    expect(logged.join('')).toMatch(
      /"removed":0.*audit events expired[^]*"removed":0.*sandbox records expired/,
    );
    await tasks.close();
    expect(queues.calls.at(-1)).toBe('closed');
  });

  it('write the last checkpoints when they are closed', async () => {
    const file = join(scratch.path, 'closed.jsonl');
    const { tasks } = await start(file);
    const organizationId = randomUUID();
    await database.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
    await tasks.close();
    expect(await readFile(file, 'utf8')).toContain(organizationId);
  });

  it('log a sink that fails, and write its checkpoints to the next one', async () => {
    const organizationId = randomUUID();
    await database.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
    const failing = await start(scratch.path);
    await failing.tasks.close();
    expect(failing.logged.join('')).toMatch(/EISDIR.*checkpoints were not written/);
    const file = join(scratch.path, 'next.jsonl');
    await (await start(file)).tasks.close();
    expect(await readFile(file, 'utf8')).toContain(organizationId);
  });
});
