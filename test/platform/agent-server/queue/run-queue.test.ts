// Two queues on one real database: which process executes which run and when, and that what was lost is executed again, once.
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Backlog } from '../../../../src/platform/agent-server/queue/backlog.ts';
import { cancelRuns } from '../../../../src/platform/agent-server/runs/cancellation.ts';
import { WorkerError } from '../../../../src/platform/agent-server/workers/worker-error.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createQueueScene, type Process, type QueueScene } from './queue-scene.ts';

let scene: QueueScene;

beforeAll(async () => {
  scene = await createQueueScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());
// Those of a test that has failed would claim the runs of the next one, or give it theirs.
afterEach(async () => {
  await scene.closeProcesses();
  await scene.removeRuns();
});

const rowOf = (runId: string) =>
  scene.store.db.selectFrom('agent_runs').selectAll().where('run_id', '=', runId).executeTakeFirstOrThrow();
const threadOf = (threadId: string) =>
  scene.store.db
    .selectFrom('agent_threads')
    .selectAll()
    .where('thread_id', '=', threadId)
    .executeTakeFirstOrThrow();
/** It executes nothing, and is not about to look for runs: a run that is created now begins with its creation. */
const idle = ({ queue }: Process) =>
  expect
    .poll(() => {
      const place = queue.running === 0 ? queue.reserve('') : undefined;
      place?.release();
      return place !== undefined;
    })
    .toBe(true);
async function addCheckpoint(threadId: string, id: string): Promise<void> {
  const content = { checkpoint: Buffer.from('{}'), metadata: Buffer.from('{}'), searched_metadata: '{}' };
  const types = {
    type: 'json',
    metadata_type: 'json',
    versions: '{}',
    parent_checkpoint_id: null,
    run_id: null,
  };
  const row = { thread_id: threadId, checkpoint_ns: '', checkpoint_id: id, ...content, ...types };
  await scene.store.db.insertInto('agent_checkpoints').values(row).execute();
}

const usersOf = (runId: string) =>
  scene.store.db.selectFrom('agent_run_users').select('run_id').where('run_id', '=', runId).execute();

describe('a run', () => {
  it('is executed and ended with its thread and without its user', async () => {
    const one = scene.addProcess();
    const threadId = await scene.addThread();
    const { row } = await scene.create({ threadId, body: { input: { n: 1 }, context: { a: 1 } } }, one);
    const executed = await one.started(row.run_id);
    expect(await scene.status(row.run_id)).toBe('running');
    expect(await threadOf(threadId)).toMatchObject({ status: 'busy', metadata: { graph_id: 'agent' } });
    expect(await usersOf(row.run_id)).toHaveLength(1);
    expect(executed.params).toMatchObject({
      ...{ attempt: 1, is_resumed: false, input: '{"n":1}', context: '{"a":1}', durability: 'async' },
      stream_mode: ['values'],
    });
    expect(JSON.parse(executed.params.config)).toMatchObject({
      tags: ['by default'],
      configurable: { level: 'default', run_id: row.run_id, thread_id: threadId, graph_id: 'agent' },
    });
    await executed.options.onEvents([{ event: 'values', data: '{"n":2}' }]);
    executed.end({ n: 2, text: '\0' });
    await one.ended(row.run_id);
    expect(await rowOf(row.run_id)).toMatchObject({ status: 'success', output: { n: 2 }, lease_owner: null });
    expect(await threadOf(threadId)).toMatchObject({
      ...{ status: 'idle', values: { n: 2, text: '\0' }, searched_values: { n: 2, text: '\ufffd' } },
    });
    expect(await usersOf(row.run_id)).toEqual([]);
    await one.queue.close();
  });

  it('that fails has an event, an error and a thread that says so', async () => {
    const one = scene.addProcess();
    const threadId = await scene.addThread();
    const { row } = await scene.create({ threadId }, one);
    const { fail } = await one.started(row.run_id);
    fail(new WorkerError({ kind: 'thrown', error: 'TypeError', message: 'Boo!' }));
    await one.ended(row.run_id);
    const error = { error: 'TypeError', message: 'Boo!' };
    expect(await rowOf(row.run_id)).toMatchObject({ status: 'error', output: error });
    expect(await threadOf(threadId)).toMatchObject({ status: 'error', error, values: { state: 'read' } });
    expect(one.events.get(row.run_id)).toEqual([{ event: 'error', data: JSON.stringify(error) }]);
    await one.queue.close();
  });

  it('ends as timeout', async () => {
    const one = scene.addProcess({ timeoutMs: 10 });
    const { row } = await scene.create({ threadId: await scene.addThread() }, one);
    await one.ended(row.run_id);
    expect(await rowOf(row.run_id)).toMatchObject({ status: 'timeout', output: { error: 'TimeoutError' } });
    await one.queue.close();
  });

  it('ends as error where its user does not open, and is not executed', async () => {
    // It reads the user of a run that waited.
    const { row } = await scene.create({ threadId: await scene.addThread() });
    const one = scene.addProcess({ openUser: async () => undefined });
    await one.ended(row.run_id);
    expect(await rowOf(row.run_id)).toMatchObject({
      status: 'error',
      output: { error: 'RunUserUnavailable' },
    });
    expect(one.executing.size).toBe(0);
    await one.queue.close();
  });

  it('without a thread leaves a result alone', async () => {
    const one = scene.addProcess();
    const { row } = await scene.create({ body: { input: {} } }, one);
    (await one.started(row.run_id)).end({ done: true });
    await one.ended(row.run_id);
    expect(await scene.status(row.run_id)).toBeUndefined();
    const { db } = scene.store;
    const threads = db.selectFrom('agent_threads').selectAll().where('thread_id', '=', row.thread_id);
    expect(await threads.execute()).toEqual([]);
    const results = db.selectFrom('agent_run_results').selectAll().where('run_id', '=', row.run_id);
    expect(await results.execute()).toMatchObject([{ status: 'success', output: { done: true } }]);
    await one.queue.close();
  });

  it('that is due later waits', async () => {
    const one = scene.addProcess();
    const { row } = await scene.create(
      { threadId: await scene.addThread(), body: { after_seconds: 3600 } },
      one,
    );
    expect(await scene.status(row.run_id)).toBe('pending');
    const { db } = scene.store;
    await db
      .updateTable('agent_runs')
      .set({ run_after: new Date(0) })
      .where('run_id', '=', row.run_id)
      .execute();
    (await one.started(row.run_id)).end();
    await one.ended(row.run_id);
    await one.queue.close();
  });
});

describe('a run that begins with its creation', () => {
  it('runs from its commit on, and begins at the checkpoint that its thread has', async () => {
    const one = scene.addProcess({ upkeepMs: 3_600_000 });
    const threadId = await scene.addThread();
    const committed: unknown[] = [];
    const onCommitted = async ({ row }: { readonly row: { readonly run_id: string } }) =>
      void committed.push(await rowOf(row.run_id));
    await idle(one);
    const first = await scene.create({ threadId, onCommitted }, one);
    expect(committed).toMatchObject([{ status: 'running', attempt: 1, losses: 0 }]);
    const { params, options, end } = await one.started(first.row.run_id);
    expect(params.latest).toBeNull();
    const typed = { type: 'json', text: '{}' };
    await options.checkpoints.handle('checkpoint.put', {
      ...{ thread_id: threadId, checkpoint_ns: '', checkpoint_id: 'c', checkpoint: typed, metadata: typed },
      ...{ searched_metadata: {}, versions: {}, values: [] },
    });
    end();
    await one.ended(first.row.run_id);
    await idle(one);
    const second = await scene.create({ threadId }, one);
    const started = await one.started(second.row.run_id);
    expect(started.params.latest).toMatchObject({ thread_id: threadId, checkpoint_id: 'c', writes: [] });
    // One that waits for it asks for itself what is the last one then.
    const third = await scene.create({ threadId }, one);
    started.end();
    const waited = await one.started(third.row.run_id);
    expect([third.begun, waited.params.latest]).toEqual([undefined, undefined]);
    waited.end();
    await one.ended(third.row.run_id);
    await one.queue.close();
  });

  it('has a lease from its insertion on, however long its transaction has waited for the thread', async () => {
    const threadId = await scene.addThread();
    const { row } = await scene.create({ threadId, owner: randomUUID() });
    const { rows } = await sql<{ isWhole: boolean }>`
      select lease_until > created_at + interval '10 seconds' as "isWhole" from agent_runs
      where run_id = ${row.run_id}`.execute(scene.store.db);
    expect(rows).toEqual([{ isWhole: true }]);
  });

  it('asks for the checkpoint that it names, and the next one begins at the last one', async () => {
    const one = scene.addProcess();
    const threadId = await scene.addThread();
    await addCheckpoint(threadId, 'c');
    for (const body of [
      { checkpoint_id: 'c' },
      { checkpoint: { checkpoint_id: 'c' } },
      { config: { configurable: { checkpoint_id: 'c' } } },
      {},
    ]) {
      await idle(one);
      const { row } = await scene.create({ threadId, body }, one);
      const { params, end } = await one.started(row.run_id);
      const isNamed = Object.keys(body).length > 0;
      expect(params.checkpoint).toEqual(isNamed ? { checkpoint_id: 'c' } : undefined);
      expect(params.latest).toEqual(isNamed ? undefined : expect.objectContaining({ checkpoint_id: 'c' }));
      end();
      await one.ended(row.run_id);
    }
    await one.queue.close();
  });

  it('is not created at a checkpoint that its thread does not have', async () => {
    const threadId = await scene.addThread();
    await addCheckpoint(await scene.addThread(), 'c');
    for (const body of [{ checkpoint_id: 'c' }, { config: { configurable: { checkpoint_id: 'c' } } }])
      for (const given of [{ threadId, body }, { body }])
        await expect(scene.create(given)).rejects.toMatchObject({ kind: 'not_found' });
    const runs = scene.store.db.selectFrom('agent_runs').select('run_id').where('thread_id', '=', threadId);
    expect(await runs.execute()).toEqual([]);
  });

  it('is executed by another process where this one ends before the start', async () => {
    // Its one place is taken, so that it does not claim the run itself.
    const lost = scene.addProcess({ renewalMs: 3_600_000, upkeepMs: 3_600_000, places: 1 });
    const place = lost.queue.reserve('');
    const { row } = await scene.create({ threadId: await scene.addThread(), owner: place?.owner });
    expect(await rowOf(row.run_id)).toMatchObject({ status: 'running', lease_owner: place?.owner });
    const other = scene.addProcess();
    await scene.expire(row.run_id);
    const { params, end } = await other.started(row.run_id);
    expect([params.attempt, params.is_resumed]).toEqual([2, true]);
    end();
    await other.ended(row.run_id);
    place?.release();
    await Promise.all([lost.queue.close(), other.queue.close()]);
  });

  it('ends as it was asked for between its commit and its start', async () => {
    const one = scene.addProcess({ renewalMs: 3_600_000, upkeepMs: 3_600_000 });
    const { store } = scene;
    const onCommitted = async ({ row }: { readonly row: { readonly run_id: string } }) => {
      await store.write((trx) => cancelRuns(trx, [row.run_id], 'interrupt'));
      one.queue.cancel(row.run_id, 'interrupt');
    };
    await idle(one);
    const { row } = await scene.create({ threadId: await scene.addThread(), onCommitted }, one);
    await one.ended(row.run_id);
    expect(await scene.status(row.run_id)).toBe('interrupted');
    await one.queue.close();
  });

  it('needs a place: there is none where all are taken, where others wait, or while the process drains', async () => {
    const one = scene.addProcess({ places: 1 });
    const place = one.queue.reserve('');
    expect([place?.owner, one.queue.reserve('')]).toEqual([expect.any(String), undefined]);
    const { row, begun } = await scene.create({ threadId: await scene.addThread() }, one);
    expect([begun, await scene.status(row.run_id)]).toEqual([undefined, 'pending']);
    // It waits for this place.
    place?.release();
    const { end } = await one.started(row.run_id);
    end();
    await one.ended(row.run_id);
    one.queue.stop();
    expect(one.queue.reserve('')).toBeUndefined();
    await one.queue.close();
  });
});

describe('the runs of a thread', () => {
  it('are executed one after another, in their order, by any process', async () => {
    const [one, two] = [scene.addProcess(), scene.addProcess()];
    const threadId = await scene.addThread();
    const order: string[] = [];
    const ids: string[] = [];
    for (let index = 0; index < 4; index += 1)
      ids.push((await scene.create({ threadId }, index % 2 === 0 ? one : two)).row.run_id);
    for (const runId of ids) {
      const [process, executed] = await Promise.race(
        [one, two].map(async (each) => [each, await each.started(runId)] as const),
      );
      expect([...one.executing.keys(), ...two.executing.keys()]).toEqual([runId]);
      order.push(runId);
      executed.end();
      await process.ended(runId);
    }
    expect(order).toEqual(ids);
    expect(await threadOf(threadId)).toMatchObject({ status: 'idle' });
    await Promise.all([one.queue.close(), two.queue.close()]);
  });

  it('refuse another one with reject', async () => {
    const threadId = await scene.addThread();
    await scene.create({ threadId });
    const second = scene.create({ threadId, body: { multitask_strategy: 'reject' } });
    await expect(second).rejects.toMatchObject({ kind: 'conflict' });
    await scene.store.db.deleteFrom('agent_threads').where('thread_id', '=', threadId).execute();
  });

  it.each(['interrupt', 'rollback'] as const)('make way with %s', async (strategy) => {
    // It looks for no run by itself, so that the first one begins in the other process.
    const two = scene.addProcess({ upkeepMs: 3_600_000 });
    await idle(two);
    const one = scene.addProcess();
    const threadId = await scene.addThread();
    const running = (await scene.create({ threadId }, one)).row.run_id;
    await one.started(running);
    const waiting = (await scene.create({ threadId }, one)).row.run_id;
    const next = (await scene.create({ threadId, body: { multitask_strategy: strategy } }, two)).row.run_id;
    await one.ended(running);
    const left = strategy === 'interrupt' ? 'interrupted' : undefined;
    expect([await scene.status(running), await scene.status(waiting)]).toEqual([left, left]);
    const executed = await Promise.race([one.started(next), two.started(next)]);
    executed.end();
    await Promise.race([one.ended(next), two.ended(next)]);
    expect(await scene.status(next)).toBe('success');
    await Promise.all([one.queue.close(), two.queue.close()]);
  });
});

describe('a run that is lost', () => {
  it('with its worker is executed again, and ends after three losses', async () => {
    const one = scene.addProcess();
    const { row } = await scene.create({ threadId: await scene.addThread() }, one);
    for (const attempt of [1, 2, 3]) {
      const { params, options, fail } = await one.started(row.run_id);
      expect([params.attempt, params.is_resumed]).toEqual([attempt, attempt > 1]);
      // Whatever it does, it does it to itself from then on.
      expect(options.isAlone).toBe(attempt > 1);
      fail(attempt === 2 ? new WorkerError('blocked') : new WorkerError('lost', 'was ended by SIGSEGV'));
    }
    await one.ended(row.run_id);
    const message = expect.stringMatching(/the last time its worker was ended by SIGSEGV$/);
    expect(await rowOf(row.run_id)).toMatchObject({
      ...{ status: 'error', losses: 3, is_alone: true, output: { error: 'RunLost', message } },
    });
    expect(one.events.get(row.run_id)?.map(({ event }) => event)).toEqual(['error']);
    await one.queue.close();
  });

  it('with others is executed alone, one at a time, and others go on meanwhile', async () => {
    const one = scene.addProcess();
    const ids: string[] = [];
    for (const identity of ['ada', 'ada', 'ada', 'bob'])
      ids.push((await scene.create({ threadId: await scene.addThread(), identity }, one)).row.run_id);
    for (const { fail } of await Promise.all(ids.map((id) => one.started(id)))) fail(new WorkerError('lost'));
    const order: string[] = [];
    while (order.length < ids.length) {
      await expect.poll(() => one.executing.size).toBe(1);
      const [id = ''] = one.executing.keys();
      const { end } = await one.started(id);
      // One that was never lost passes them.
      const other = await scene.create({ threadId: await scene.addThread() }, one);
      const { options, end: endOther } = await one.started(other.row.run_id);
      expect(options.isAlone).toBe(false);
      expect([...one.executing.keys()]).toEqual([id, other.row.run_id]);
      endOther();
      await one.ended(other.row.run_id);
      order.push(id);
      end();
      await one.ended(id);
    }
    // However many runs one user has lost, the other one has the second place.
    expect(order.indexOf(ids[3] ?? '')).toBeLessThan(2);
    await one.queue.close();
  });

  it('before it has reached a worker has lost nothing', async () => {
    const one = scene.addProcess();
    const { row } = await scene.create({ threadId: await scene.addThread() }, one);
    for (let attempt = 1; attempt <= 4; attempt += 1)
      (await one.started(row.run_id)).fail(new WorkerError('unavailable'));
    (await one.started(row.run_id)).end();
    await one.ended(row.run_id);
    expect(await rowOf(row.run_id)).toMatchObject({ status: 'success', losses: 0, is_alone: false });
    await one.queue.close();
  });

  it('with its process is executed by another one, and the first attempt writes nothing', async () => {
    // It renews no lease.
    // Its one place is taken, so that it does not claim the run again.
    const lost = scene.addProcess({ renewalMs: 3_600_000, upkeepMs: 3_600_000, places: 1 });
    const threadId = await scene.addThread();
    const { row } = await scene.create({ threadId }, lost);
    const first = await lost.started(row.run_id);
    await scene.expire(row.run_id);
    const other = scene.addProcess();
    const second = await other.started(row.run_id);
    expect(second.params.attempt).toBe(2);
    const put = first.options.checkpoints.handle('checkpoint.put_writes', {
      ...{ thread_id: threadId, checkpoint_ns: '', checkpoint_id: 'c', task_id: 't' },
      writes: [{ idx: 0, channel: 'a', value: { type: 'json', text: '1' } }],
    });
    await expect(put).rejects.toMatchObject({ kind: 'conflict' });
    first.end({ from: 'the first' });
    await lost.released(row.run_id);
    expect(await scene.status(row.run_id)).toBe('running');
    second.end({ from: 'the second' });
    await other.ended(row.run_id);
    expect(await rowOf(row.run_id)).toMatchObject({ status: 'success', output: { from: 'the second' } });
    await Promise.all([lost.queue.close(), other.queue.close()]);
  });

  it('to another process is stopped here', async () => {
    const one = scene.addProcess({ upkeepMs: 3_600_000 });
    const { row } = await scene.create({ threadId: await scene.addThread() }, one);
    await one.started(row.run_id);
    const { db } = scene.store;
    const taken = { attempt: 7, lease_owner: '00000000-0000-4000-8000-000000000000' };
    await db.updateTable('agent_runs').set(taken).where('run_id', '=', row.run_id).execute();
    await one.released(row.run_id);
    expect(one.executing.size).toBe(0);
    expect(await rowOf(row.run_id)).toMatchObject({ status: 'running', ...taken });
    await db.deleteFrom('agent_threads').where('thread_id', '=', row.thread_id).execute();
    await one.queue.close();
  });
});

describe('a process that drains', () => {
  it('gives its runs back, which counts as no loss, and claims no more', async () => {
    const one = scene.addProcess();
    const { row } = await scene.create({ threadId: await scene.addThread() }, one);
    await one.started(row.run_id);
    await one.queue.drain();
    expect(await rowOf(row.run_id)).toMatchObject({ status: 'pending', attempt: 1, losses: 0 });
    const other = await scene.create({ threadId: await scene.addThread() }, one);
    expect(one.executing.size).toBe(0);
    const two = scene.addProcess();
    for (const runId of [row.run_id, other.row.run_id]) {
      (await two.started(runId)).end();
      await two.ended(runId);
    }
    await Promise.all([one.queue.close(), two.queue.close()]);
  });

  it('that was stopped before gives them back at once, and until then they go on', async () => {
    const one = scene.addProcess({ drainMs: 60_000 });
    const [kept, ended] = [
      (await scene.create({ threadId: await scene.addThread() }, one)).row,
      (await scene.create({ threadId: await scene.addThread() }, one)).row,
    ];
    await one.started(kept.run_id);
    const { end } = await one.started(ended.run_id);
    expect([one.queue.isStopped, one.queue.running]).toEqual([false, 2]);
    one.queue.stop();
    const other = await scene.create({ threadId: await scene.addThread() }, one);
    end();
    await one.ended(ended.run_id);
    await expect.poll(() => one.queue.running).toBe(1);
    expect(one.queue.isStopped).toBe(true);
    expect(await scene.status(other.row.run_id)).toBe('pending');
    await one.queue.drain();
    expect(await rowOf(kept.run_id)).toMatchObject({ status: 'pending', attempt: 1, losses: 0 });
    const two = scene.addProcess();
    for (const runId of [kept.run_id, other.row.run_id]) {
      (await two.started(runId)).end();
      await two.ended(runId);
    }
    await Promise.all([one.queue.close(), two.queue.close()]);
  });

  it('lets them end in time', async () => {
    const one = scene.addProcess({ drainMs: 60_000 });
    const { row } = await scene.create({ threadId: await scene.addThread() }, one);
    const { end } = await one.started(row.run_id);
    const drained = one.queue.drain();
    end();
    await drained;
    expect(await scene.status(row.run_id)).toBe('success');
    await one.queue.close();
  });
});

it('as many runs wait as may, until some have ended', async () => {
  const backlog = new Backlog(3);
  const one = scene.addProcess({ places: 1, backlog });
  const ids: string[] = [];
  // What waits is counted now and then, and added to in between.
  const refusal = (): string => {
    try {
      backlog.requirePlace();
      return '';
    } catch (error) {
      return String(error);
    }
  };
  for (let n = 0; n < 4; n += 1) {
    await expect.poll(refusal).toBe('');
    ids.push((await scene.create({ threadId: await scene.addThread() }, one)).row.run_id);
  }
  await expect.poll(refusal).toContain('SALLYPORT_AGENT_PENDING_RUNS');
  for (const id of ids) (await one.started(id)).end();
  await expect.poll(refusal).toBe('');
  await one.queue.close();
});

it('a user with many runs leaves places for another', async () => {
  const mine = [];
  for (let index = 0; index < 12; index += 1) mine.push(await scene.create({ identity: 'ada' }));
  const other = await scene.create({ identity: 'bob' });
  const one = scene.addProcess({ places: 4 });
  const { end } = await one.started(other.row.run_id);
  const [first, second, third, fourth] = mine.map(({ row }) => row.run_id);
  for (const runId of [first, second, third]) await one.started(runId ?? '');
  expect(one.executing.size).toBe(4);
  end();
  await one.ended(other.row.run_id);
  one.executing.get(first ?? '')?.end();
  await one.started(fourth ?? '');
  const { db } = scene.store;
  const threads = mine.map(({ row }) => row.thread_id);
  await db.deleteFrom('agent_threads').where('thread_id', 'in', threads).execute();
  await one.queue.close();
});

it('no config says whose run it is', async () => {
  const configurable = {
    langgraph_auth_user: { identity: 'mallory' },
    graph_auth_user_id: 'mallory',
    level: 'own',
  };
  const body = { config: { configurable }, after_seconds: 3600 };
  const { row } = await scene.create({ threadId: await scene.addThread(), body });
  const { kwargs } = await rowOf(row.run_id);
  expect(kwargs).toMatchObject({ config: { configurable: { level: 'own' } } });
  expect(JSON.stringify(kwargs)).not.toContain('mallory');
});

it('a function that makes graphs learns whose thread it is asked for when a run has failed', async () => {
  const ada = { identity: 'ada', display_name: 'Ada', is_authenticated: true, permissions: ['read'] };
  const configs: string[] = [];
  const one = scene.addProcess({
    openUser: async () => ({ user: ada, headers: {} }),
    workers: {
      run: () => Promise.reject(new WorkerError({ kind: 'thrown', error: 'TypeError', message: 'no' })),
      call: async (_, params) => {
        configs.push('config' in params ? String(params.config) : '');
        return JSON.stringify({ values: {}, next: [], tasks: [] }) as never;
      },
    },
  });
  const { row } = await scene.create({ threadId: await scene.addThread() }, one);
  await one.ended(row.run_id);
  expect(configs.map((config) => JSON.parse(config))).toMatchObject([
    {
      configurable: { graph_auth_user: ada, langgraph_auth_user: ada, langgraph_auth_permissions: ['read'] },
    },
  ]);
  await one.queue.close();
});

it('nothing of a user is in a log', async () => {
  const secret = 'token-8b1f';
  const { row } = await scene.create({ threadId: await scene.addThread() });
  const one = scene.addProcess({
    openUser: async () => ({
      user: { ...{ identity: 'ada', display_name: 'Ada', is_authenticated: true }, permissions: [], secret },
      headers: { 'x-key': secret },
    }),
  });
  const { params, fail } = await one.started(row.run_id);
  expect(JSON.parse(params.config)).toMatchObject({
    configurable: {
      ...{ graph_auth_user: { secret }, langgraph_auth_user_id: 'ada', langgraph_auth_permissions: [] },
      'x-key': secret,
    },
  });
  expect(params.hidden).toEqual(expect.arrayContaining(['graph_auth_user', 'langgraph_auth_user', 'x-key']));
  fail(new WorkerError('lost'));
  (await one.started(row.run_id)).end();
  await one.ended(row.run_id);
  expect(JSON.stringify(await rowOf(row.run_id))).not.toContain(secret);
  expect(one.logged.join('\n')).not.toContain(secret);
  await one.queue.close();
});
