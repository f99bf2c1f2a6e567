// The calls of a worker for checkpoints, on PostgreSQL.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCheckpointPort } from '../../../../src/platform/agent-server/checkpoints/checkpoint-port.ts';
import {
  listCheckpoints,
  MAX_STARTED_BYTES,
  readLatestToStart,
} from '../../../../src/platform/agent-server/checkpoints/checkpoint-reading.ts';
import { type AgentRows, createAgentRows } from '../../../support/agent-rows.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { json, putOf, writesOf } from './checkpoint-scene.ts';

let database: TestDatabase;
let rows: AgentRows;

beforeAll(async () => {
  database = await createTestDatabase();
  rows = createAgentRows(database.store);
});
afterAll(() => database?.[Symbol.asyncDispose]());

async function openPort() {
  const threadId = await rows.addThread({ status: 'busy' });
  const runId = await rows.addRun(threadId);
  const port = createCheckpointPort(database.store, { threadId, lease: { runId, attempt: 1 } });
  const get = (id?: string) =>
    port.handle('checkpoint.get', {
      ...{ thread_id: threadId, checkpoint_ns: '' },
      ...(id === undefined ? {} : { checkpoint_id: id }),
    });
  return { threadId, runId, port, get };
}

const count = async (
  table: 'agent_checkpoints' | 'agent_checkpoint_values' | 'agent_checkpoint_writes',
  thread: string,
) =>
  (await database.store.db.selectFrom(table).select('thread_id').where('thread_id', '=', thread).execute())
    .length;

describe('what was put is read', () => {
  it('for the start of a run as for its worker, and not where it is large', async () => {
    const { db } = database.store;
    const { threadId, port, get } = await openPort();
    expect(await readLatestToStart(db, threadId)).toBeNull();
    const fresh = { a: '1', b: '2' };
    await port.handle('checkpoint.put', putOf(threadId, '1', { fresh, parent_checkpoint_id: '0' }));
    await port.handle('checkpoint.put_writes', writesOf(threadId, '1', 'task', { 0: 'x', [-3]: 'y' }));
    expect(await readLatestToStart(db, threadId)).toEqual(await get());
    expect(await get()).toMatchObject({ values: [{}, {}], writes: [{}, {}] });
    const large = { channel: 'a', version: '2', value: json('x'.repeat(MAX_STARTED_BYTES)) };
    const versions = { versions: { a: '2', b: '2' }, values: [large] };
    await port.handle('checkpoint.put', putOf(threadId, '2', versions));
    expect(await readLatestToStart(db, threadId)).toBeUndefined();
    expect(await get()).toMatchObject({ checkpoint_id: '2', values: [{}, {}] });
  });

  it('whole, by its id and as the latest', async () => {
    const { threadId, port, get } = await openPort();
    expect(await get()).toBeNull();
    const bytes = { type: 'bytes', base64: Buffer.from([0, 255, 10]).toString('base64') };
    await port.handle('checkpoint.put', {
      ...putOf(threadId, '1', { parent_checkpoint_id: '0', versions: { messages: '01', blob: '02' } }),
      metadata: json({ source: 'loop', text: '\0' }),
      searched_metadata: { source: 'loop', text: '\0' },
      values: [
        { channel: 'messages', version: '01', value: json(['\0 é \ud800']) },
        { channel: 'blob', version: '02', value: bytes },
      ],
    });
    await port.handle('checkpoint.put_writes', writesOf(threadId, '1', 'task', { 0: 'a', 1: '\0' }));
    const expected = {
      ...{ thread_id: threadId, checkpoint_ns: '', checkpoint_id: '1', parent_checkpoint_id: '0' },
      checkpoint: json({ id: '1' }),
      metadata: json({ source: 'loop', text: '\0' }),
      versions: { messages: '01', blob: '02' },
      values: expect.toSatisfy((values) => values.length === 2),
      writes: [
        { task_id: 'task', idx: 0, channel: 'messages', value: json('a') },
        { task_id: 'task', idx: 1, channel: 'messages', value: json('\0') },
      ],
    };
    const found = await get('1');
    expect(found).toEqual({ ...expected, latest_checkpoint_id: '1' });
    expect(found?.values.find(({ channel }) => channel === 'blob')?.value).toEqual(bytes);
    expect(found?.values.find(({ channel }) => channel === 'messages')?.value).toEqual(json(['\0 é \ud800']));
    expect(await get()).toEqual(expected);
    expect(await get('2')).toBeNull();
  });

  it('with the values of earlier checkpoints, each of which is stored once', async () => {
    const { threadId, port, get } = await openPort();
    await port.handle('checkpoint.put', putOf(threadId, '1', { fresh: { a: '1', b: '1' } }));
    const second = putOf(threadId, '2', { fresh: { b: '2' } });
    await port.handle('checkpoint.put', { ...second, versions: { a: '1', b: '2' } });
    const values = (await get())?.values.map(({ channel, version }) => `${channel} ${version}`);
    expect(values?.toSorted()).toEqual(['a 1', 'b 2']);
    expect(await count('agent_checkpoint_values', threadId)).toBe(3);
  });

  it('whole, where several were put together', async () => {
    const { threadId, port, get } = await openPort();
    await port.handle('checkpoint.put_all', {
      thread_id: threadId,
      puts: ['1', '2'].map((id) => putOf(threadId, id, { fresh: { a: id } })),
      put_writes: ['one', 'two'].map((task) => writesOf(threadId, '2', task, { 0: task })),
    });
    expect((await get('1'))?.values.map(({ version }) => version)).toEqual(['1']);
    const latest = await get();
    expect(latest?.checkpoint_id).toBe('2');
    expect(latest?.writes.map(({ value }) => value.text).toSorted()).toEqual(['"one"', '"two"']);
  });

  it('although it was not waited for', async () => {
    const { threadId, port, get } = await openPort();
    const put = port.handle('checkpoint.put', putOf(threadId, '1'));
    expect((await get())?.checkpoint_id).toBe('1');
    await put;
  });
});

describe('repeated calls', () => {
  it('store nothing twice', async () => {
    const { threadId, port } = await openPort();
    const put = putOf(threadId, '1', { fresh: { a: '1' } });
    const writes = writesOf(threadId, '1', 'task', { 0: 'a' });
    for (let time = 0; time < 2; time += 1) {
      await Promise.all([port.handle('checkpoint.put', put), port.handle('checkpoint.put_writes', writes)]);
      await Promise.all([port.handle('checkpoint.put', put), port.handle('checkpoint.put', put)]);
    }
    expect(await count('agent_checkpoints', threadId)).toBe(1);
    expect(await count('agent_checkpoint_values', threadId)).toBe(1);
    expect(await count('agent_checkpoint_writes', threadId)).toBe(1);
  });

  it.each([true, false])(
    'keep the first write of a task, and of the graph itself the last; together: %s',
    async (isTogether) => {
      const { threadId, port, get } = await openPort();
      const calls = [
        writesOf(threadId, '1', 'task', { 0: 'first', [-1]: 'first' }),
        writesOf(threadId, '1', 'task', { 0: 'second', [-1]: 'second' }),
      ];
      const run = (call: (typeof calls)[number]) => port.handle('checkpoint.put_writes', call);
      await port.handle('checkpoint.put', putOf(threadId, '1'));
      if (isTogether) await Promise.all(calls.map(run));
      else for (const call of calls) await run(call);
      const written = (await get())?.writes.map(({ idx, value }) => [idx, value.text]);
      expect(written).toEqual([
        [-1, '"second"'],
        [0, '"first"'],
      ]);
    },
  );

  it('of another run: the same rules', async () => {
    const { threadId, runId, port, get } = await openPort();
    await port.handle('checkpoint.put', putOf(threadId, '1'));
    await port.handle(
      'checkpoint.put_writes',
      writesOf(threadId, '1', 'task', { 0: 'first', [-3]: 'first' }),
    );
    await endRun(runId);
    const lease = { runId: await rows.addRun(threadId), attempt: 1 };
    const next = createCheckpointPort(database.store, { threadId, lease });
    await next.handle(
      'checkpoint.put_writes',
      writesOf(threadId, '1', 'task', { 0: 'second', [-3]: 'second' }),
    );
    expect((await get())?.writes.map(({ value }) => value.text)).toEqual(['"second"', '"first"']);
  });
});

async function endRun(runId: string): Promise<void> {
  const set = { status: 'success' as const, lease_owner: null, lease_until: null };
  await database.store.db.updateTable('agent_runs').set(set).where('run_id', '=', runId).execute();
}

describe('who may not write', () => {
  const refused = { name: 'DomainError', kind: 'conflict' };

  it('an attempt that was lost, a run that ended, and one that never was', async () => {
    const { threadId, runId, port } = await openPort();
    const put = putOf(threadId, '1', { fresh: { a: '1' } });
    const later = { threadId, lease: { runId, attempt: 2 } };
    const unknown = { threadId, lease: { runId: randomUUID(), attempt: 1 } };
    for (const scope of [later, unknown]) {
      const other = createCheckpointPort(database.store, scope);
      await expect(other.handle('checkpoint.put', put)).rejects.toMatchObject(refused);
      const writes = writesOf(threadId, '1', 'task', { 0: 'a' });
      await expect(other.handle('checkpoint.put_writes', writes)).rejects.toMatchObject(refused);
    }
    await endRun(runId);
    await expect(port.handle('checkpoint.put', put)).rejects.toMatchObject(refused);
    const all = { thread_id: threadId };
    await expect(port.handle('checkpoint.delete_thread', all)).rejects.toMatchObject(refused);
    expect(await count('agent_checkpoints', threadId)).toBe(0);
    expect(await count('agent_checkpoint_values', threadId)).toBe(0);
  });

  it('an attempt whose successor is being claimed: it waits, and is refused', async () => {
    const { threadId, runId, port } = await openPort();
    const [locked, claimed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const claim = database.store.write(async (trx) => {
      await trx.updateTable('agent_runs').set({ attempt: 2 }).where('run_id', '=', runId).execute();
      locked.resolve();
      await claimed.promise;
    });
    await locked.promise;
    const put = port.handle('checkpoint.put', putOf(threadId, '1'));
    const ended = expect(put).rejects.toMatchObject(refused);
    await untilWaiting(1);
    claimed.resolve();
    await claim;
    await ended;
    expect(await count('agent_checkpoints', threadId)).toBe(0);
  });

  it('an update of the state while a run has the thread', async () => {
    const threadId = await rows.addThread();
    const port = createCheckpointPort(database.store, { threadId });
    await port.handle('checkpoint.put', putOf(threadId, '1'));
    const { db } = database.store;
    await db.updateTable('agent_threads').set({ status: 'busy' }).where('thread_id', '=', threadId).execute();
    await expect(port.handle('checkpoint.put', putOf(threadId, '2'))).rejects.toMatchObject(refused);
    expect(await count('agent_checkpoints', threadId)).toBe(1);
  });

  it('an update of a state that a run has changed meanwhile', async () => {
    const threadId = await rows.addThread();
    const latest = { thread_id: threadId, checkpoint_ns: '' };
    const update = createCheckpointPort(database.store, { threadId });
    expect(await update.handle('checkpoint.get', latest)).toBeNull();
    // It goes on from what it has written itself.
    await update.handle('checkpoint.put', putOf(threadId, '2'));
    await update.handle('checkpoint.put', putOf(threadId, '4', { parent_checkpoint_id: '2' }));
    const [late, fork] = [1, 2].map(() => createCheckpointPort(database.store, { threadId }));
    await late?.handle('checkpoint.get', latest);
    await fork?.handle('checkpoint.get', { ...latest, checkpoint_id: '2' });
    // As of a run that has begun and ended.
    await createCheckpointPort(database.store, { threadId }).handle('checkpoint.put', putOf(threadId, '5'));
    await expect(late?.handle('checkpoint.put', putOf(threadId, '6'))).rejects.toMatchObject(refused);
    expect(await count('agent_checkpoints', threadId)).toBe(3);
    // One that names its checkpoint is no update of the latest state.
    await fork?.handle('checkpoint.put', putOf(threadId, '6', { parent_checkpoint_id: '2' }));
    expect(await count('agent_checkpoints', threadId)).toBe(4);
  });

  it('one of two updates that have read the same state, whichever is committed last', async () => {
    const threadId = await rows.addThread();
    const latest = { thread_id: threadId, checkpoint_ns: '' };
    const before = createCheckpointPort(database.store, { threadId });
    await before.handle('checkpoint.put', putOf(threadId, '1'));
    const updates = ['2', '3'].map((id) => ({
      id,
      port: createCheckpointPort(database.store, { threadId }),
    }));
    for (const { port } of updates) await port.handle('checkpoint.get', latest);
    const [isLocked, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // Both have begun before either of them is committed.
    const holder = database.store.write(async (trx) => {
      const row = trx.selectFrom('agent_threads').select('thread_id').where('thread_id', '=', threadId);
      await row.forUpdate().execute();
      isLocked.resolve();
      await mayEnd.promise;
    });
    await isLocked.promise;
    const puts = updates.map(({ id, port }) => port.handle('checkpoint.put', putOf(threadId, id)));
    const settled = Promise.allSettled(puts);
    await untilWaiting(2);
    mayEnd.resolve();
    await holder;
    const outcomes = await settled;
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    const message =
      'The state of the thread has changed since this update read it: nothing was written. Read the state, and update it again';
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { ...refused, message },
    });
    expect(await count('agent_checkpoints', threadId)).toBe(2);
    // It has read what the other one wrote.
    const again = createCheckpointPort(database.store, { threadId });
    await again.handle('checkpoint.get', latest);
    await again.handle('checkpoint.put', putOf(threadId, '4'));
  });

  it('an update at a named checkpoint that would not be the latest state', async () => {
    const threadId = await rows.addThread();
    const place = { thread_id: threadId, checkpoint_ns: '' };
    const before = createCheckpointPort(database.store, { threadId });
    for (const id of ['2', '4']) await before.handle('checkpoint.put', putOf(threadId, id));
    const fork = createCheckpointPort(database.store, { threadId });
    const read = await fork.handle('checkpoint.get', { ...place, checkpoint_id: '2' });
    expect([read?.checkpoint_id, read?.latest_checkpoint_id]).toEqual(['2', '4']);
    // As a process makes it whose clock is behind.
    const behind = fork.handle('checkpoint.put', putOf(threadId, '3', { parent_checkpoint_id: '2' }));
    await expect(behind).rejects.toMatchObject(refused);
    expect(await count('agent_checkpoints', threadId)).toBe(2);
    await fork.handle('checkpoint.put', putOf(threadId, '5', { parent_checkpoint_id: '2' }));
    expect((await before.handle('checkpoint.get', place))?.checkpoint_id).toBe('5');
  });

  it('who reads, and who means another thread', async () => {
    const threadId = await rows.addThread();
    const port = createCheckpointPort(database.store, { threadId, isReadOnly: true });
    await expect(port.handle('checkpoint.put', putOf(threadId, '1'))).rejects.toMatchObject(refused);
    const other = { thread_id: await rows.addThread() };
    await expect(port.handle('checkpoint.get', { ...other, checkpoint_ns: '' })).rejects.toMatchObject(
      refused,
    );
    await expect(port.handle('checkpoint.list', other)).rejects.toMatchObject(refused);
    const copy = { thread_id: threadId, to_thread_id: other.thread_id };
    await expect(port.handle('checkpoint.copy_thread', copy)).rejects.toMatchObject(refused);
  });

  it.each([
    [{ checkpoint_ns: 'a\0' }, 'checkpoint_ns'],
    [{ checkpoint_ns: 'x'.repeat(1501) }, 'checkpoint_ns'],
    [{ versions: { 'a\0': '1' } }, 'versions'],
    [{ checkpoint: { type: 'json' } }, 'checkpoint: A value has either text or base64'],
  ])('who sends %o', async (wrong, message) => {
    const { threadId, port } = await openPort();
    const put = port.handle('checkpoint.put', { ...putOf(threadId, '1'), ...wrong } as never);
    await expect(put).rejects.toMatchObject({ ...refused, message: expect.stringContaining(message) });
  });
});

/** So many statements of this database wait for a lock. */
async function untilWaiting(statements: number): Promise<void> {
  for (;;) {
    const waiting = database.owner.db
      .selectFrom('pg_locks' as never)
      .where('granted' as never, '=', false as never);
    if ((await waiting.selectAll().execute()).length >= statements) return;
  }
}

describe('list', () => {
  it('newest first, by namespace, place and metadata', async () => {
    const { threadId, port } = await openPort();
    for (const [id, source] of [
      ['1', 'input'],
      ['2', 'loop'],
      ['3', 'loop'],
    ] as const)
      await port.handle('checkpoint.put', {
        ...putOf(threadId, id),
        searched_metadata: { source, more: { a: '\0' } },
      });
    await port.handle('checkpoint.put', { ...putOf(threadId, '2'), checkpoint_ns: 'inner' });
    const list = async (params: object) => {
      const found = await port.handle('checkpoint.list', { thread_id: threadId, ...params });
      return found.map(({ checkpoint_ns: ns, checkpoint_id: id }) => `${ns}${id}`);
    };
    expect(await list({})).toEqual(['3', '2', 'inner2', '1']);
    expect(await list({ checkpoint_ns: '' })).toEqual(['3', '2', '1']);
    expect(await list({ checkpoint_ns: '', limit: 2 })).toEqual(['3', '2']);
    expect(await list({ checkpoint_ns: '', limit: 0 })).toEqual([]);
    expect(await list({ checkpoint_ns: '', before: '3' })).toEqual(['2', '1']);
    expect(await list({ checkpoint_ns: '', checkpoint_id: '2' })).toEqual(['2']);
    expect(await list({ checkpoint_ns: '', filter: { source: 'loop' } })).toEqual(['3', '2']);
    expect(await list({ filter: { more: { a: '\0' } } })).toEqual(['3', '2', '1']);
    expect(await list({ filter: { source: 'fork' } })).toEqual([]);
  });

  it('fewer than asked for where they are large, and at least one', async () => {
    const { threadId, port } = await openPort();
    for (const id of ['1', '2', '3']) {
      const value = json('x'.repeat(1000));
      await port.handle('checkpoint.put', {
        ...putOf(threadId, id, { versions: { a: id } }),
        values: [{ channel: 'a', version: id, value }],
      });
    }
    const list = (maxBytes: number, params = {}) =>
      listCheckpoints(database.store.db, { thread_id: threadId, ...params }, maxBytes);
    expect((await list(10)).map(({ checkpoint_id: id }) => id)).toEqual(['3']);
    expect((await list(2_500)).map(({ checkpoint_id: id }) => id)).toEqual(['3', '2']);
    expect((await list(2_500, { before: '2' })).map(({ checkpoint_id: id }) => id)).toEqual(['1']);
    expect((await list(10)).flatMap(({ values }) => values)).toHaveLength(1);
  });
});

it('deletes what the thread has', async () => {
  const { threadId, port, get } = await openPort();
  await port.handle('checkpoint.put', putOf(threadId, '1', { fresh: { a: '1' } }));
  await port.handle('checkpoint.put_writes', writesOf(threadId, '1', 'task', { 0: 'a' }));
  await port.handle('checkpoint.delete_thread', { thread_id: threadId });
  expect(await get()).toBeNull();
  expect(await count('agent_checkpoint_values', threadId)).toBe(0);
  expect(await count('agent_checkpoint_writes', threadId)).toBe(0);
});
