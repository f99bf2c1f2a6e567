import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { appendEvent } from '../../../src/platform/audit/journal.ts';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import type { Store } from '../../../src/platform/store/database.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { entryOf } from './audit-entry.ts';
import { readEvents } from './read-events.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

async function readRecords(organizationId: string): Promise<readonly string[]> {
  const rows = await database.owner.db
    .selectFrom('audit_events')
    .select('record')
    .where('organization_id', '=', organizationId)
    .orderBy('seq')
    .execute();
  return rows.map(({ record }) => record);
}

describe('an event', () => {
  it('exists if and only if its transaction was committed', async () => {
    const organizationId = randomUUID();
    const failed = database.store.write(async (trx) => {
      await appendEvent(trx, entryOf(organizationId));
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await readRecords(organizationId)).toEqual([]);
    await database.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
    expect(await readRecords(organizationId)).toHaveLength(1);
  });

  it('that cannot be written rolls back the change that it records', async () => {
    const organizationId = randomUUID();
    const email = `${randomUUID()}@example.com`;
    const work = async (id: string): Promise<void> =>
      database.owner.write(async (trx) => {
        await trx.insertInto('users').values({ email }).execute();
        await appendEvent(trx, entryOf(id));
      });
    const countUsers = async (): Promise<number> =>
      (await database.owner.db.selectFrom('users').select('id').where('email', '=', email).execute()).length;
    await expect(work('no organization')).rejects.toThrow();
    expect(await countUsers()).toBe(0);
    await work(organizationId);
    expect(await countUsers()).toBe(1);
  });

  it('records the request and the caller, addresses alone of its headers, and bounds texts of any length', async () => {
    const organizationId = randomUUID();
    const path = `/v2/listeners/${'x'.repeat(5000)}?secret=1`;
    const entry = entryOf(organizationId, {
      isSuccess: false,
      status: 404,
      resources: ['a', 'b'],
      userId: 'u',
      request: {
        method: 'DELETE',
        path,
        clientHost: '192.0.2.1',
        clientPort: 1,
        forwardedFor: `${'192.0.2.1, '.repeat(500)}y`,
      },
    });
    await database.store.write((trx) => appendEvent(trx, entry));
    const short = entryOf(organizationId, {
      request: {
        ...entry.request!,
        path: '/a#b?secret=1',
        clientHost: 'fe80::1%secret',
        forwardedFor: '1.2.3.4, \ud800,[2001:db8::1]:443, 1.2.3.4:80, 2001:db8::2, fe80::1%secret, 1.2.3',
      },
    });
    await database.store.write((trx) => appendEvent(trx, short));
    const [first, second] = (await readRecords(organizationId)).map((record) => JSON.parse(record));
    expect(first).toEqual({
      operation_succeeded: false,
      api_key_id: entry.keyId,
      user_id: 'u',
      enrichments: {
        request_method: 'DELETE',
        request_path: path.slice(0, 1024),
        client_host: '192.0.2.1',
        client_port: 1,
        x_forwarded_for: `${'192.0.2.1, '.repeat(23)}unknown`,
        response_status_code: 404,
        resource_ids: ['a', 'b'],
      },
    });
    expect(second.enrichments).toMatchObject({
      request_path: '/a',
      client_host: 'fe80::1',
      x_forwarded_for: '1.2.3.4, unknown, [2001:db8::1]:443, 1.2.3.4:80, 2001:db8::2, unknown, unknown',
    });
  });

  it('contains the id of the request when it is one of ours, and no other text that a caller sent as it', async () => {
    const organizationId = randomUUID();
    const { request } = entryOf(organizationId);
    const own = randomUUID();
    for (const id of [own, 'my-secret', `${own}x`, undefined])
      await database.store.write((trx) =>
        appendEvent(trx, entryOf(organizationId, { request: { ...request!, id } })),
      );
    const ids = (await readRecords(organizationId)).map(
      (record) => JSON.parse(record).enrichments.request_id,
    );
    expect(ids).toEqual([own, undefined, undefined, undefined]);
  });

  it('contains no key or token, wherever a caller of the journal put it', async () => {
    const organizationId = randomUUID();
    const { text } = mintKey('service');
    const { request } = entryOf(organizationId);
    const sent = {
      path: `/a/${text}/b`,
      clientHost: `fe80::1%${text}`,
      forwardedFor: `${text}, ::1%${text}`,
    };
    await database.store.write((trx) =>
      appendEvent(trx, entryOf(organizationId, { request: { ...request!, ...sent } })),
    );
    const [record = ''] = await readRecords(organizationId);
    expect(record).not.toContain(text.slice(6, 20));
    expect(JSON.parse(record).enrichments).toMatchObject({
      request_path: '/a/.../b',
      client_host: 'fe80::1',
    });
  });

  it('records the client that the nearest proxy names, whatever the client sent before', async () => {
    const organizationId = randomUUID();
    const forwardedFor = `${'203.0.113.210, '.repeat(50)}198.51.100.7, 192.0.2.1`;
    const { request } = entryOf(organizationId);
    for (const pad of ['', '1', '11'])
      await database.store.write((trx) =>
        appendEvent(
          trx,
          entryOf(organizationId, { request: { ...request!, forwardedFor: `${forwardedFor}${pad}` } }),
        ),
      );
    for (const record of await readRecords(organizationId)) {
      const hops = JSON.parse(record).enrichments.x_forwarded_for.split(', ');
      expect(hops.at(-2)).toBe('198.51.100.7');
      expect(hops.slice(0, -2).filter((hop: string) => hop !== '203.0.113.210')).toEqual([]);
    }
  });

  it('has the time at which it was written, not the start of its transaction', async () => {
    const organizationId = randomUUID();
    const reached = await database.store.write(async (trx) => {
      const clock = sql<{ at: Date; isLater: boolean }>`select clock_timestamp() as at,
        clock_timestamp() > now() + interval '5 milliseconds' as "isLater"`;
      for (;;) {
        const [row] = (await clock.execute(trx)).rows;
        if (row?.isLater !== true) continue;
        await appendEvent(trx, entryOf(organizationId));
        return row.at.getTime();
      }
    });
    const { items } = await readEvents(database.store.db, { organizationId, limit: 1 });
    expect(items[0]?.time).toBeGreaterThanOrEqual(reached);
  });

  it('is never earlier than the event before it', async () => {
    const organizationId = randomUUID();
    const before = Date.now();
    await Promise.all(
      Array.from({ length: 20 }, () =>
        database.store.write((trx) => appendEvent(trx, entryOf(organizationId))),
      ),
    );
    const { items } = await readEvents(database.store.db, { organizationId, limit: 100 });
    const times = items.map(({ time }) => time);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    expect(Math.min(...times)).toBeGreaterThanOrEqual(before - 1000);
    expect(new Set(items.map(({ metadata }) => metadata.uid)).size).toBe(20);
  });
});

describe('the tables of the log', () => {
  const organizationId = randomUUID();
  beforeAll(async () => {
    await database.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
  });

  const writes: readonly (readonly [string, string])[] = [
    ['update audit_events', "update audit_events set operation = 'login'"],
    ['delete from audit_events', 'delete from audit_events'],
    ['truncate audit_events', 'truncate audit_events'],
    ['delete from audit_heads', 'delete from audit_heads'],
    ['truncate audit_heads', 'truncate audit_heads'],
    ['delete from audit_checkpoints', 'delete from audit_checkpoints'],
    ['truncate audit_checkpoints', 'truncate audit_checkpoints'],
  ];
  const inserts: readonly (readonly [string, string])[] = [
    [
      'insert into audit_events',
      `insert into audit_events select organization_id, 9, gen_random_uuid(), time, operation, null, record, hash, hash from audit_events`,
    ],
    ['update audit_heads', 'update audit_heads set seq = 0'],
    ['insert into audit_settled', `insert into audit_settled values ('${organizationId}', now())`],
    ['update audit_settled', "update audit_settled set time = 'epoch'"],
    ['delete from audit_settled', 'delete from audit_settled'],
    ['lock the heads', 'select from audit_heads for update'],
    ['insert into audit_checkpoints', `insert into audit_checkpoints values ('${organizationId}', 'a', 9)`],
    [
      'replace a function',
      'create or replace function audit_refuse() returns trigger language sql return null',
    ],
    ['disable a trigger', 'alter table audit_events disable trigger all'],
    ['bypass the triggers', 'set session_replication_role = replica'],
    ['compute a hash', "select audit_part('x')"],
  ];

  async function fails(store: Store, statement: string): Promise<void> {
    await expect(sql.raw(statement).execute(store.db)).rejects.toThrow(
      /append-only|permission denied|must be owner/,
    );
  }

  it.each([...writes, ...inserts])('do not allow the platform to %s', async (_, statement) => {
    await fails(database.store, statement);
  });

  it.each(writes)('do not even allow their owner to %s', async (name, statement) => {
    // A row trigger fires only when there is a row.
    if (name.includes('checkpoints'))
      await sql`select audit_checkpointed(${organizationId}, 'a', 1)`.execute(database.store.db);
    await fails(database.owner, statement);
  });

  it('store no checkpoint for an event that does not exist', async () => {
    const before = await database.owner.db.selectFrom('audit_checkpoints').selectAll().execute();
    for (const reached of ['0', '-1', '99', '9223372036854775807'])
      await sql`select audit_checkpointed(${organizationId}, 'a', ${reached}::bigint)`.execute(
        database.store.db,
      );
    await sql`select audit_checkpointed(${randomUUID()}, 'a', 1)`.execute(database.store.db);
    expect(await database.owner.db.selectFrom('audit_checkpoints').selectAll().execute()).toEqual(before);
  });

  it('do not allow their owner to delete a recent event, even below the floor', async () => {
    await sql`update audit_heads set floor_seq = seq where organization_id = ${organizationId}`.execute(
      database.owner.db,
    );
    await fails(database.owner, `delete from audit_events where organization_id = '${organizationId}'`);
  });

  it('are not affected by the search path of the caller', async () => {
    await sql`create schema evil`.execute(database.owner.db);
    await sql`grant usage on schema evil to sallyport_app`.execute(database.owner.db);
    await sql`create function evil.clock_timestamp() returns timestamptz language sql
      return '2000-01-01'::timestamptz`.execute(database.owner.db);
    const other = randomUUID();
    await database.store.write(async (trx) => {
      await sql`set local search_path = evil, pg_catalog, public`.execute(trx);
      await appendEvent(trx, entryOf(other));
    });
    const { items } = await readEvents(database.store.db, { organizationId: other, limit: 1 });
    expect(items).toHaveLength(1);
  });
});
