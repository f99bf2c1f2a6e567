import { randomUUID } from 'node:crypto';
import { array, assert, asyncProperty, integer } from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InvalidInput } from '../../../src/base/domain-error.ts';
import { appendEvent } from '../../../src/platform/audit/journal.ts';
import type { Operation } from '../../../src/platform/audit/operations.ts';
import type { EventQuery } from '../../../src/platform/audit/query.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { runs } from '../../support/run-size.ts';
import { entryOf } from './audit-entry.ts';
import { readEvents } from './read-events.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

async function append(organizationId: string, change: Parameters<typeof entryOf>[1] = {}): Promise<void> {
  await database.store.write((trx) => appendEvent(trx, entryOf(organizationId, change)));
}

async function readAll(query: EventQuery): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await readEvents(database.store.db, { ...query, cursor });
    ids.push(...page.items.map(({ metadata }) => metadata.uid));
    if (page.cursor === null) return ids;
    cursor = page.cursor;
  }
}

async function idsInOrder(organizationId: string): Promise<readonly string[]> {
  const rows = await database.owner.db
    .selectFrom('audit_events')
    .select('id')
    .where('organization_id', '=', organizationId)
    .orderBy('seq', 'desc')
    .execute();
  return rows.map(({ id }) => id);
}

async function now(): Promise<Date> {
  const { rows } = await sql<{ at: Date }>`select clock_timestamp() as at`.execute(database.owner.db);
  return rows[0]?.at ?? new Date(0);
}

describe('a list of events', () => {
  it('has the newest first and no gap between its pages', async () => {
    const organizationId = randomUUID();
    for (let n = 0; n < 25; n += 1) await append(organizationId);
    const expected = await idsInOrder(organizationId);
    expect(expected).toHaveLength(25);
    for (const limit of [1, 7, 25, 100]) expect(await readAll({ organizationId, limit })).toEqual(expected);
  });

  it('continues at the same event after newer ones were added', async () => {
    const organizationId = randomUUID();
    for (let n = 0; n < 4; n += 1) await append(organizationId);
    const expected = await idsInOrder(organizationId);
    const first = await readEvents(database.store.db, { organizationId, limit: 2 });
    await append(organizationId);
    const second = await readEvents(database.store.db, {
      organizationId,
      limit: 2,
      cursor: first.cursor ?? '',
    });
    const ids = [...first.items, ...second.items].map(({ metadata }) => metadata.uid);
    expect(ids).toEqual(expected);
    expect(second.cursor).toBeNull();
  });

  it('contains nothing of another organization', async () => {
    const [mine, theirs] = [randomUUID(), randomUUID()];
    await append(mine);
    await append(theirs);
    const { items } = await readEvents(database.store.db, { organizationId: mine, limit: 10 });
    expect(items.map((item) => item.unmapped.original_audit_log.organization_id)).toEqual([mine]);
  });

  it('contains every event that was written before the request', async () => {
    const organizationId = randomUUID();
    for (let n = 1; n <= 50; n += 1) {
      await append(organizationId);
      expect((await readEvents(database.store.db, { organizationId, limit: 100 })).items).toHaveLength(n);
    }
  });

  it('can be filtered by operations and by workspace', async () => {
    const organizationId = randomUUID();
    const workspaceId = randomUUID();
    const made: readonly Operation[] = ['create_listener', 'update_listener', 'delete_listener'];
    for (const operation of made) {
      await append(organizationId, { operation });
      await append(organizationId, { operation, workspaceId });
    }
    const list = async (query: Partial<EventQuery>): Promise<readonly string[]> => {
      const { items } = await readEvents(database.store.db, { organizationId, limit: 10, ...query });
      return items.map(({ api }) => api.operation);
    };
    expect(await list({ operations: ['delete_listener', 'create_listener'] })).toEqual([
      'delete_listener',
      'delete_listener',
      'create_listener',
      'create_listener',
    ]);
    expect(await list({ workspaceId })).toEqual(made.toReversed());
    expect(await list({ workspaceId, operations: ['update_listener'] })).toEqual(['update_listener']);
  });

  it('includes its start and its end', async () => {
    const organizationId = randomUUID();
    await append(organizationId);
    const { items } = await readEvents(database.store.db, { organizationId, limit: 1 });
    const at = items[0]?.time ?? 0;
    const count = async (startMs: number, endMs: number): Promise<number> => {
      const window = { startTime: new Date(startMs), endTime: new Date(endMs) };
      return (await readAll({ organizationId, limit: 10, ...window })).length;
    };
    expect(await count(at, at)).toBe(1);
    expect(await count(at, at + 1)).toBe(1);
    expect(await count(at - 1, at)).toBe(1);
    expect(await count(at - 1, at - 1)).toBe(0);
    expect(await count(at + 1, at + 2)).toBe(0);
    await expect(count(at + 1, at)).rejects.toBeInstanceOf(InvalidInput);
  });

  it('accepts times far outside the stored range', async () => {
    const organizationId = randomUUID();
    await append(organizationId);
    const edges = [new Date(-8.64e15), new Date(8.64e15), new Date(0)];
    for (const startTime of edges) {
      const page = await readEvents(database.store.db, { organizationId, limit: 1, startTime });
      expect(page.items.length).toBe(startTime.getTime() <= 0 ? 1 : 0);
      for (const endTime of edges) {
        const reading = readEvents(database.store.db, { organizationId, limit: 1, startTime, endTime });
        if (endTime.getTime() > 0 || endTime < startTime)
          await expect(reading).rejects.toBeInstanceOf(InvalidInput);
        else expect((await reading).items).toEqual([]);
      }
    }
  });
});

describe('a cursor', () => {
  it('is rejected when it is broken or from another list', async () => {
    const organizationId = randomUUID();
    for (let n = 0; n < 3; n += 1) await append(organizationId);
    const query: EventQuery = { organizationId, limit: 1 };
    const { cursor } = await readEvents(database.store.db, query);
    if (cursor === null) throw new Error('one page only');
    const content = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    const forged = (change: object): string =>
      Buffer.from(JSON.stringify({ ...content, ...change })).toString('base64url');
    const rows: readonly EventQuery[] = [
      ...['', 'x', '!!', 'e30', `${cursor}A`, `${cursor}=`, cursor.slice(1), 'A'.repeat(100_000)].map(
        (broken) => ({ ...query, cursor: broken }),
      ),
      ...[{ seq: '-1' }, { seq: '1e3' }, { seq: 1 }, { time: 0 }, { extra: 1 }, { seq: '9'.repeat(30) }].map(
        (change) => ({ ...query, cursor: forged(change) }),
      ),
      { ...query, cursor, organizationId: randomUUID() },
      { ...query, cursor, workspaceId: randomUUID() },
      { ...query, cursor, operations: ['login'] },
      { ...query, cursor, startTime: new Date(0) },
      { ...query, cursor, endTime: new Date() },
    ];
    for (const row of rows) {
      const rejected = await readEvents(database.store.db, row).catch((error: unknown) => error);
      expect(rejected).toBeInstanceOf(InvalidInput);
      expect((rejected as InvalidInput).issues).toMatchObject([{ loc: ['query', 'cursor'] }]);
    }
    expect((await readEvents(database.store.db, { ...query, cursor, limit: 100 })).items).toHaveLength(2);
  });
});

describe('adjacent windows', () => {
  it('wait for an event that is being written', async () => {
    for (const isFirst of [true, false]) {
      const organizationId = randomUUID();
      if (!isFirst) await append(organizationId);
      const appended = Promise.withResolvers<void>();
      const mayCommit = Promise.withResolvers<void>();
      const writing = database.store.write(async (trx) => {
        await appendEvent(trx, entryOf(organizationId));
        appended.resolve();
        await mayCommit.promise;
      });
      await appended.promise;
      // After the event, even when it was written in this millisecond.
      const endTime = new Date((await now()).getTime() + 1);
      const startTime = new Date(0);
      let isRead = false;
      const reading = readAll({ organizationId, limit: 10, startTime, endTime }).finally(() => {
        isRead = true;
      });
      await readAll({ organizationId: randomUUID(), limit: 10 });
      expect(isRead).toBe(false);
      mayCommit.resolve();
      await writing;
      expect(await reading).toHaveLength(isFirst ? 1 : 2);
    }
  });

  it('return an event once even when the clock is set back', async () => {
    const organizationId = randomUUID();
    await append(organizationId);
    const read = await now();
    await readAll({ organizationId, limit: 10, startTime: new Date(0), endTime: read });
    const stored = database.owner.db
      .selectFrom('audit_settled')
      .select('time')
      .where('organization_id', '=', organizationId);
    expect(await stored.executeTakeFirst()).toEqual({ time: read });
    // As if the window had been read before the clock was set back by an hour.
    const later = new Date(read.getTime() + 3_600_000);
    await sql`update audit_settled set time = ${later} where organization_id = ${organizationId}`.execute(
      database.owner.db,
    );
    await append(organizationId);
    await append(organizationId);
    const { items } = await readEvents(database.store.db, { organizationId, limit: 2 });
    expect(items.map(({ time }) => time)).toEqual([later.getTime() + 1, later.getTime() + 1]);
  });

  it('return each event once under concurrent writes', { timeout: 120_000 }, async () => {
    await assert(
      asyncProperty(
        array(integer({ min: 1, max: 12 }), { minLength: 2, maxLength: 6 }),
        integer({ min: 1, max: 10 }),
        // How much the clock of the reader is ahead.
        integer({ min: 0, max: 20 }),
        async (writers, limit, aheadMs) => {
          const organizationId = randomUUID();
          let writing = writers.length;
          const write = async (count: number): Promise<void> => {
            for (let n = 0; n < count; n += 1) await append(organizationId);
            writing -= 1;
          };
          const done = Promise.all(writers.map(write));
          const read: string[] = [];
          let startTime = new Date(0);
          for (let isLast = false; !isLast; ) {
            isLast = writing === 0;
            // Often in the same millisecond as an event.
            const endTime = new Date((await now()).getTime() + aheadMs);
            read.push(...(await readAll({ organizationId, limit, startTime, endTime })));
            startTime = new Date(endTime.getTime() + 1);
          }
          await done;
          expect(read.toSorted()).toEqual((await idsInOrder(organizationId)).toSorted());
        },
      ),
      { numRuns: runs(40, 10) },
    );
  });
});
