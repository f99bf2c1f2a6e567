import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expireRecords } from '../../../src/platform/sandbox-records/records.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { type RecordScene, batchOf, createRecordScene, firstMs, recordOf } from './record-scene.ts';

let scene: RecordScene;
beforeAll(async () => {
  scene = await createRecordScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const numbersIn = (body: { readonly records: readonly { readonly number: number }[] }): readonly number[] =>
  body.records.map(({ number }) => number);

describe('a batch of records', () => {
  it('is stored once, however often it is sent, and the response says how many records were new', async () => {
    const token = await scene.token('once');
    const batch = batchOf(1_000);
    const responses = [await scene.send(token, batch), await scene.send(token, batch)];
    const half = {
      ...batch,
      records: [...batch.records.slice(500), ...batchOf(100, batch.source, 1_000).records],
    };
    responses.push(await scene.send(token, half));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(responses.map(({ body }) => body)).toEqual([
      { received: 1_000, added: 1_000 },
      { received: 1_000, added: 0 },
      { received: 600, added: 100 },
    ]);
    const { body } = await scene.list('once', '?limit=1000');
    expect(numbersIn(body)).toEqual(Array.from({ length: 1_000 }, (_, i) => 1_099 - i));
    expect(body.records[0]).toEqual({ source: batch.source, ...recordOf({ number: 1_099 }) });
  });

  it('is stored once when it is sent twice at the same time', async () => {
    const token = await scene.token('twice');
    const batch = batchOf(500);
    const responses = await Promise.all([scene.send(token, batch), scene.send(token, batch)]);
    expect(responses.map(({ body }) => body.added).toSorted((a, b) => a - b)).toEqual([0, 500]);
  });

  it('belongs to the sandbox of its token, whatever the records say', async () => {
    const token = await scene.token('mine');
    await scene.send(token, { source: randomUUID(), records: [recordOf({ number: 1, sandbox: 'theirs' })] });
    expect((await scene.list('theirs')).body.records).toEqual([]);
    expect((await scene.list('mine')).body.records).toMatchObject([{ sandbox: 'theirs' }]);
  });

  const unfit: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ['a field that no sidecar writes', { header: 'Bearer x' }],
    ['a query', { path: '/v1?token=x' }],
    ['a value behind the name of a header', { injected: ['Authorization: Bearer x'] }],
    ['a cause over several lines', { cause: 'a\nb' }],
    ['a text that is too long', { method: 'A'.repeat(33) }],
    ['an outcome of its own', { outcome: 'other' }],
    ['a time before 1970', { time: '0000-01-01T00:00:00Z' }],
    ['a number below zero', { bytes_up: -1 }],
    ['a text that the database cannot store', { rule: 'a\u0000b' }],
  ];
  it.each(unfit)('with %s is rejected, and none of its records is stored', async (_, fields) => {
    const token = await scene.token('strict');
    const records = [recordOf({ number: 1 }), recordOf({ number: 2, ...fields })];
    const response = await scene.send(token, { source: randomUUID(), records });
    expect([response.status, response.text.includes('Bearer x')]).toEqual([422, false]);
    expect((await scene.list('strict')).body.records).toEqual([]);
  });

  it('has at most a thousand records, and at least one', async () => {
    const token = await scene.token('sizes');
    expect((await scene.send(token, batchOf(1_001))).status).toBe(422);
    expect((await scene.send(token, batchOf(0))).status).toBe(422);
  });

  it('is rejected with 429 while two batches of its sandbox are in progress', async () => {
    const token = await scene.token('busy');
    const rejected = Promise.withResolvers<void>();
    const statuses: number[] = [];
    const send = async (): Promise<void> => {
      const { status, headers } = await scene.send(token, batchOf(1_000));
      statuses.push(status);
      if (status === 429) expect(headers.get('retry-after')).toBe('1');
      if (statuses.length === 4) rejected.resolve();
    };
    // Holds two batches in progress until the others have their responses.
    const sent = await scene.api.database.owner.db.transaction().execute(async (transaction) => {
      await sql`lock table sandbox_records in exclusive mode`.execute(transaction);
      const all = Array.from({ length: 6 }, send);
      await rejected.promise;
      return all;
    });
    await Promise.all(sent);
    expect(statuses).toEqual([429, 429, 429, 429, 200, 200]);
    const { body } = await scene.list('busy', '?limit=1');
    expect(body.records).toHaveLength(1);
  });
});

describe('the records of a sandbox', () => {
  it('are listed newest first, page by page, each once, while more are stored', async () => {
    const token = await scene.token('pages');
    // Many with the same time: source and number decide their order.
    const time = new Date(firstMs).toISOString();
    const records = Array.from({ length: 25 }, (_, number) => recordOf({ number, time }));
    await scene.send(token, { source: randomUUID(), records });
    await scene.send(token, batchOf(25, randomUUID(), 1));
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const at: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const page = await scene.list('pages', `?limit=7${at}`);
      seen.push(
        ...page.body.records.map(
          (r: Record<string, unknown>) => `${r['time']} ${r['source']} ${r['number']}`,
        ),
      );
      cursor = page.body.next_cursor;
      await scene.send(token, batchOf(1, randomUUID(), 1_000 + seen.length));
    }
    expect([seen.length, new Set(seen).size]).toEqual([50, 50]);
    expect(seen.map((text) => text.slice(0, 24))).toEqual(
      seen
        .map((text) => text.slice(0, 24))
        .toSorted()
        .reverse(),
    );
  });

  it('are bounded by times: two adjacent windows return each once', async () => {
    const token = await scene.token('windows');
    await scene.send(token, batchOf(10));
    const at = (ms: number): string => new Date(firstMs + ms).toISOString();
    const early = await scene.list('windows', `?end_time=${at(4)}`);
    const late = await scene.list('windows', `?start_time=${at(4)}`);
    expect([numbersIn(late.body), numbersIn(early.body)]).toEqual([
      [9, 8, 7, 6, 5, 4],
      [3, 2, 1, 0],
    ]);
  });

  it.each([
    '?cursor=x',
    '?cursor=WyIwMDAwLTAxLTAxVDAwOjAwOjAwWiJd',
    '?limit=0',
    '?limit=1001',
    '?start_time=0000-01-01T00:00:00Z',
  ])('are not listed with %s', async (query) => expect((await scene.list('pages', query)).status).toBe(422));

  it('are not visible in another workspace', async () => {
    const { api, organizationId } = scene;
    await scene.send(await scene.token('private'), batchOf(3));
    const key = await api.addServiceKey(
      organizationId,
      'WORKSPACE_ADMIN',
      await api.addWorkspace(organizationId),
    );
    const foreign = await api.ask('GET', '/v1/sandboxes/private/records', { key });
    const absent = await api.ask('GET', '/v1/sandboxes/nowhere/records', { key });
    expect([foreign.status, foreign.text]).toEqual([absent.status, absent.text]);
    expect(foreign.body).toEqual({ records: [], next_cursor: null });
  });

  it('do not continue from the cursor of another list', async () => {
    await scene.send(await scene.token('one'), batchOf(3));
    const { body } = await scene.list('one', '?limit=1');
    expect((await scene.list('one', `?cursor=${body.next_cursor}`)).status).toBe(200);
    for (const [sandbox, more] of [
      ['another', ''],
      ['one', `&end_time=${new Date(firstMs).toISOString()}`],
    ] as const)
      expect((await scene.list(sandbox, `?cursor=${body.next_cursor}${more}`)).status).toBe(422);
  });

  it('continue from any valid time in a cursor, also with an offset that PostgreSQL does not support', async () => {
    const { status } = await scene.send(await scene.token('offset'), batchOf(2));
    expect(status).toBe(200);
    const first = await scene.list('offset', '?limit=1');
    const held = JSON.parse(Buffer.from(first.body.next_cursor, 'base64url').toString());
    for (const time of ['9000-01-01T00:00:00+23:59', `9000-01-01T00:00:00.${'0'.repeat(90)}Z`]) {
      const cursor = Buffer.from(JSON.stringify({ ...held, time })).toString('base64url');
      const page = await scene.list('offset', `?cursor=${cursor}`);
      expect(page.status).toBe(200);
      expect(page.body.records).toHaveLength(2);
    }
  });

  it('expire by the time at which they were received, not by the time of the sidecar', async () => {
    const { database } = scene.api;
    const token = await scene.token('old');
    await scene.send(token, batchOf(20));
    await sql`update sandbox_records set received_at = '2020-01-01' where sandbox = 'old' and number < 15`.execute(
      database.owner.db,
    );
    expect(await expireRecords(database.store, new Date('2020-01-02'))).toBe(15);
    expect(numbersIn((await scene.list('old')).body)).toEqual([19, 18, 17, 16, 15]);
  });
});
