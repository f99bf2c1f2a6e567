// How a read of the log waits: for its end to pass and for a running writer, without a connection and without a lock.
import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InvalidInput } from '../../../src/base/domain-error.ts';
import { appendEvent } from '../../../src/platform/audit/journal.ts';
import { settleWindow } from '../../../src/platform/audit/window.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { entryOf } from './audit-entry.ts';
import { readEvents } from './read-events.ts';

let database: TestDatabase;
let organizationId: string;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

async function append(): Promise<void> {
  await database.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
}

function busyConnections(): number {
  const { size, idle, waiting } = database.store.connections();
  return size - idle + waiting;
}

async function clockMs(): Promise<number> {
  const { rows } = await sql<{ at: Date }>`select clock_timestamp() as at`.execute(database.owner.db);
  return rows[0]?.at.getTime() ?? 0;
}

function count(window: { readonly startTime?: Date; readonly endTime?: Date }, signal?: AbortSignal) {
  const query = { organizationId, limit: 100, ...window };
  return readEvents(database.store.db, query, signal).then(({ items }) => items.length);
}

/** Runs `work` while a transaction that has appended an event is open. */
async function whileWriting(work: () => Promise<void>): Promise<void> {
  await database.owner.write(async (trx) => {
    await appendEvent(trx, entryOf(organizationId));
    await work();
  });
}

const never = new AbortController().signal;

describe('a window that ends ahead of the clock', () => {
  it('is read once its end has passed, holds no connection until then, and contains what is written meanwhile', async () => {
    organizationId = randomUUID();
    await append();
    const end = (await clockMs()) + 4_000;
    const reading = count({ startTime: new Date(0), endTime: new Date(end) });
    const seen = { isRead: false };
    void reading.then(() => (seen.isRead = true));
    await append();
    while (busyConnections() > 0 && !seen.isRead) await setImmediate();
    expect({ busy: busyConnections(), ...seen }).toEqual({ busy: 0, isRead: false });
    expect(await reading).toBe(2);
    expect(await clockMs()).toBeGreaterThan(end);
  });

  it('by more than 10 s is rejected with the time of the database', async () => {
    organizationId = randomUUID();
    const before = await clockMs();
    const settling = settleWindow(
      database.store.db,
      { organizationId, startTime: undefined, endTime: new Date(before + 11_000) },
      never,
    );
    const error = await settling.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidInput);
    const [issue] = (error as InvalidInput).issues;
    expect(issue?.loc).toEqual(['query', 'end_time']);
    const named = /ahead of the clock of the database, which is at (\S+Z)$/.exec(issue?.msg ?? '')?.[1] ?? '';
    expect(Date.parse(named)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(named)).toBeLessThanOrEqual(await clockMs());
  });

  it('is not read when the caller leaves', async () => {
    organizationId = randomUUID();
    const leaving = new AbortController();
    const reading = count({ endTime: new Date((await clockMs()) + 9_000) }, leaving.signal);
    leaving.abort();
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('while an event is being written', () => {
  it('the newest events are read without waiting', async () => {
    organizationId = randomUUID();
    await append();
    await whileWriting(async () => {
      const reads = Array.from({ length: 50 }, () => count({}));
      expect(new Set(await Promise.all(reads))).toEqual(new Set([1]));
    });
    expect(await count({})).toBe(2);
  });

  it('a window that could contain it waits for it, without a connection and without a lock', async () => {
    organizationId = randomUUID();
    await append();
    const reads: Promise<number>[] = [];
    let isRead = false;
    await whileWriting(async () => {
      const window = { startTime: new Date(0), endTime: new Date(await clockMs()) };
      for (let n = 0; n < 50; n += 1) reads.push(count(window));
      void Promise.race(reads).then(() => (isRead = true));
      const mine = organizationId;
      organizationId = randomUUID();
      // As many reads of another organization as the pool has connections go on.
      for (let n = 0; n < 40; n += 1) expect(await count({})).toBe(0);
      organizationId = mine;
      const { rows } = await sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(database.owner.db);
      expect(rows).toEqual([]);
      expect(isRead).toBe(false);
    });
    expect(new Set(await Promise.all(reads))).toEqual(new Set([2]));
  });

  it('and is rolled back, a window does not wait for its writer afterwards', async () => {
    organizationId = randomUUID();
    await append();
    const failed = database.owner.write(async (trx) => {
      await appendEvent(trx, entryOf(organizationId));
      throw new Error('rolled back');
    });
    await expect(failed).rejects.toThrow('rolled back');
    const endTime = new Date(await clockMs());
    expect(await count({ startTime: new Date(0), endTime })).toBe(1);
  });
});
