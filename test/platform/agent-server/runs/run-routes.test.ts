// The routes of runs: what they take, what they respond, and who sees what.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RequestError } from '../../../../src/base/http/request-body.ts';
import { WorkerError } from '../../../../src/platform/agent-server/workers/worker-error.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { handlerGate, openGate, ownerAuth } from '../../../support/agent-gate.ts';
import { createRunsScene, type RunsScene } from './runs-scene.ts';

const body = { assistant_id: 'agent', input: { n: 1 } };

describe('without users', () => {
  let scene: RunsScene;

  beforeAll(async () => {
    scene = await createRunsScene(openGate());
  });
  afterAll(() => scene?.[Symbol.asyncDispose]());

  const create = async (threadId: string, given: object = {}) => {
    const asked = await scene.ask('POST', `/threads/${threadId}/runs`, { body: { ...body, ...given } });
    return asked.json();
  };

  it('a run is created, shown, listed and joined', async () => {
    const threadId = await scene.addThread();
    const asked = await scene.ask('POST', `/threads/${threadId}/runs`, {
      body: { ...body, metadata: { a: 1 }, config: { configurable: { b: 2 } } },
    });
    expect(asked.status).toBe(200);
    const run = await asked.json();
    expect(run).toMatchObject({
      ...{ thread_id: threadId, status: 'pending', multitask_strategy: 'enqueue', metadata: { a: 1 } },
      kwargs: {
        ...{ input: { n: 1 }, temporary: false, subgraphs: false, resumable: false, stream_mode: ['values'] },
        config: { configurable: { b: 2, run_id: run.run_id, thread_id: threadId, graph_id: 'agent' } },
      },
    });
    // Which assistant of which graph: traces and checkpoints are found by it.
    const metadata = { a: 1, graph_id: 'agent', assistant_id: run.assistant_id };
    expect([run.metadata, run.kwargs.config.metadata]).toEqual([metadata, metadata]);
    const path = `/threads/${threadId}/runs/${run.run_id}`;
    expect(asked.headers.get('content-location')).toBe(path);
    const { end } = await scene.started(run.run_id);
    expect(await (await scene.ask('GET', path)).json()).toMatchObject({ status: 'running' });
    const joined = await scene.ask('GET', `${path}/join`);
    end({ done: true });
    expect(await joined.json()).toEqual({ done: true });
    const list = await scene.ask('GET', `/threads/${threadId}/runs?select=run_id&select=status&limit=1`);
    expect(await list.json()).toEqual([{ run_id: run.run_id, status: 'success' }]);
    expect(await (await scene.ask('GET', `${path}/join`)).json()).toEqual({ done: true });
    const select = encodeURIComponent('["run_id"]');
    const none = await scene.ask('GET', `/threads/${threadId}/runs?status=error&select=${select}`);
    expect(await none.json()).toEqual([]);
  });

  it('a stream has the events of the run, and where to go on', async () => {
    const threadId = await scene.addThread();
    const asked = await scene.ask('POST', `/threads/${threadId}/runs/stream`, {
      body: { ...body, stream_resumable: true },
    });
    const place = asked.headers.get('content-location') ?? '';
    expect(asked.headers.get('location')).toBe(`${place}/stream`);
    const runId = place.split('/').at(-1) ?? '';
    const { options, end } = await scene.started(runId);
    const text = asked.text();
    await options.onEvents([{ event: 'values', data: '{"n":2}' }]);
    end({ n: 2 });
    const metadata = `event: metadata\ndata: {"run_id":"${runId}","attempt":1}\nid: 0\n\n`;
    expect(await text).toBe(`${metadata}event: values\ndata: {"n":2}\nid: 1\n\n`);
    const again = await scene.ask('GET', `${place}/stream`, { headers: { 'last-event-id': '0' } });
    expect(await again.text()).toBe('event: values\ndata: {"n":2}\nid: 1\n\n');
    const plain = await scene.ask('POST', `/threads/${threadId}/runs/stream`, { body });
    expect(plain.headers.get('location')).toBeNull();
    (await scene.started(plain.headers.get('content-location')?.split('/').at(-1) ?? '')).end();
    await plain.text();
  });

  it('wait begins at once and ends with one object', async () => {
    const threadId = await scene.addThread();
    const asked = await scene.ask('POST', `/threads/${threadId}/runs/wait`, { body });
    const place = asked.headers.get('content-location') ?? '';
    expect(asked.headers.get('location')).toBe(`${place}/join`);
    (await scene.started(place.split('/').at(-1) ?? '')).end({ n: 2 });
    expect(await asked.text()).toBe('\n{"n":2}');
    const failing = await scene.ask('POST', `/threads/${threadId}/runs/wait`, { body });
    const { fail } = await scene.started(failing.headers.get('content-location')?.split('/').at(-1) ?? '');
    fail(new WorkerError({ kind: 'thrown', error: 'CustomError', message: 'Boo!' }));
    expect([failing.status, await failing.json()]).toEqual([
      200,
      { __error__: { error: 'CustomError', message: 'Boo!' } },
    ]);
  });

  it('a run without a thread gives its result, and nothing of it is left', async () => {
    const asked = await scene.ask('POST', '/runs/wait', { body });
    const runId = asked.headers.get('content-location')?.replace('/runs/', '') ?? '';
    (await scene.started(runId)).end({ n: 3 });
    expect(await asked.json()).toEqual({ n: 3 });
    const join = asked.headers.get('location') ?? '';
    expect(await (await scene.ask('GET', join)).json()).toEqual({ n: 3 });
    expect((await scene.ask('GET', join.replace('/join', ''))).status).toBe(404);
    const kept = await scene.ask('POST', '/runs', { body: { ...body, on_completion: 'keep' } });
    const run = await kept.json();
    (await scene.started(run.run_id)).end();
    const path = `/threads/${run.thread_id}/runs/${run.run_id}`;
    await (await scene.ask('GET', `${path}/join`)).text();
    expect(await (await scene.ask('GET', path)).json()).toMatchObject({ status: 'success' });
  });

  it('a client that leaves ends the run, if it asked for that', async () => {
    const left = new AbortController();
    const asked = await scene.ask('POST', '/runs/stream', {
      body: { ...body, on_completion: 'keep', on_disconnect: 'cancel' },
      left: left.signal,
    });
    const runId = asked.headers.get('content-location')?.replace('/runs/', '') ?? '';
    const { options } = await scene.started(runId);
    const text = asked.text();
    left.abort(new RequestError('client_gone'));
    await text;
    if (!options.cancel.aborted)
      await new Promise((resolve) => options.cancel.addEventListener('abort', resolve));
    expect(options.cancel.reason).toBe('interrupt');
  });

  it.each(['stream', 'wait'])(
    'a client that leaves before its response to %s begins ends the run, too',
    async (how) => {
      const left = new AbortController();
      const threadId = await scene.addThread();
      const sent = { ...body, on_disconnect: 'cancel' };
      const path = `/threads/${threadId}/runs`;
      // Its body is never read, as that of a response whose connection is gone.
      const asked = await scene.ask('POST', `${path}/${how}`, { body: sent, left: left.signal });
      const runId = asked.headers.get('content-location')?.split('/').at(-1) ?? '';
      const { options } = await scene.started(runId);
      left.abort(new RequestError('client_gone'));
      if (!options.cancel.aborted) await once(options.cancel, 'abort');
      expect(options.cancel.reason).toBe('interrupt');
    },
  );

  it('cancel ends a run that waits at once, and one that runs by its worker', async () => {
    const threadId = await scene.addThread();
    const running = await create(threadId);
    await scene.started(running.run_id);
    const waiting = await create(threadId);
    const path = `/threads/${threadId}/runs`;
    expect((await scene.ask('POST', `${path}/${waiting.run_id}/cancel`)).status).toBe(202);
    expect(await (await scene.ask('GET', `${path}/${waiting.run_id}`)).json()).toMatchObject({
      status: 'interrupted',
    });
    expect((await scene.ask('POST', `${path}/${running.run_id}/cancel?wait=1`)).status).toBe(204);
    expect(await (await scene.ask('GET', `${path}/${running.run_id}`)).json()).toMatchObject({
      status: 'interrupted',
    });
    const gone = await create(threadId);
    await scene.started(gone.run_id);
    const rollback = await scene.ask('POST', `${path}/${gone.run_id}/cancel?wait=1&action=rollback`);
    expect(rollback.status).toBe(204);
    expect((await scene.ask('GET', `${path}/${gone.run_id}`)).status).toBe(404);
    expect((await scene.ask('POST', `${path}/${gone.run_id}/cancel`)).status).toBe(404);
  });

  it('cancel of many takes ids, all of which must be there, or a status', async () => {
    const threadId = await scene.addThread();
    const one = await create(threadId, { after_seconds: 3600 });
    const two = await create(threadId, { after_seconds: 3600 });
    const ids = { thread_id: threadId, run_ids: [one.run_id, randomUUID()] };
    expect((await scene.ask('POST', '/runs/cancel', { body: ids })).status).toBe(404);
    const path = `/threads/${threadId}/runs`;
    expect(await (await scene.ask('GET', `${path}/${one.run_id}`)).json()).toMatchObject({
      status: 'pending',
    });
    const many = { thread_id: threadId, run_ids: [one.run_id] };
    expect((await scene.ask('POST', '/runs/cancel', { body: many })).status).toBe(204);
    const rest = { thread_id: threadId, status: 'pending' };
    expect((await scene.ask('POST', '/runs/cancel?action=rollback', { body: rest })).status).toBe(204);
    const left = await (await scene.ask('GET', path)).json();
    expect(left).toMatchObject([{ run_id: one.run_id, status: 'interrupted' }]);
    expect((await scene.ask('GET', `${path}/${two.run_id}`)).status).toBe(404);
    expect((await scene.ask('POST', '/runs/cancel', { body: {} })).status).toBe(422);
  });

  const LONG = { tags: ['long'] };

  it.each(['interrupt', 'rollback'])(
    'more runs than a statement has parameters: %s',
    LONG,
    async (action) => {
      const threadId = await scene.addThread();
      const one = await create(threadId, { after_seconds: 3600 });
      const { db } = scene.database.store;
      const count = 65_536;
      await sql`
      insert into agent_runs (run_id, thread_id, assistant_id, assistant_version, graph_id, kwargs, multitask_strategy, run_after)
      select gen_random_uuid(), thread_id, assistant_id, 1, 'agent', '{}', 'enqueue', run_after
      from agent_runs, generate_series(1, ${count}::int) where run_id = ${one.run_id}`.execute(db);
      const body = { thread_id: threadId, status: 'all' };
      expect((await scene.ask('POST', `/runs/cancel?action=${action}`, { body })).status).toBe(204);
      const { rows } = await sql<{ left: string }>`
      select count(*) as left from agent_runs where thread_id = ${threadId} and status = 'pending'`.execute(
        db,
      );
      expect(rows).toEqual([{ left: '0' }]);
      const thread = db.selectFrom('agent_threads').select('status').where('thread_id', '=', threadId);
      expect(await thread.executeTakeFirst()).toEqual({ status: 'idle' });
    },
  );

  it('too large a page is none, and too large metadata', async () => {
    const threadId = await scene.addThread();
    const path = `/threads/${threadId}/runs`;
    for (let index = 0; index < 4; index += 1) await create(threadId, { after_seconds: 3600 });
    const kwargs = sql<string>`json_build_object('text', repeat('a', 17000000))`;
    const { db } = scene.database.store;
    await sql`update agent_runs set kwargs = ${kwargs} where thread_id = ${threadId}`.execute(db);
    expect((await scene.ask('GET', path)).status).toBe(400);
    expect(await (await scene.ask('GET', `${path}?select=status&limit=2`)).json()).toEqual([
      { status: 'pending' },
      { status: 'pending' },
    ]);
    const metadata = { a: 'a'.repeat(300_000) };
    const refused = await scene.ask('POST', path, { body: { ...body, metadata } });
    expect([refused.status, (await refused.json()).detail[0].loc]).toEqual([422, ['body', 'metadata']]);
  });

  it('more runs of a thread than may wait are refused, and none of them is there', async () => {
    const threadId = await scene.addThread();
    for (let index = 0; index < 5; index += 1) await create(threadId, { after_seconds: 3600 });
    const path = `/threads/${threadId}/runs`;
    const refused = await scene.ask('POST', path, { body });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10']);
    expect((await refused.json()).detail).toContain('SALLYPORT_AGENT_THREAD_PENDING_RUNS');
    expect(await (await scene.ask('GET', `${path}?limit=100&select=run_id`)).json()).toHaveLength(5);
    const rollback = { ...body, multitask_strategy: 'rollback', after_seconds: 3600 };
    expect((await scene.ask('POST', path, { body: rollback })).status).toBe(200);
  });

  it('more runs than may wait are refused on every thread, and none of them is there', async () => {
    const threadId = await scene.addThread();
    scene.fill(true);
    for (const path of [`/threads/${threadId}/runs`, '/runs', '/runs/wait', '/runs/stream']) {
      const refused = await scene.ask('POST', path, { body });
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10']);
      expect((await refused.json()).detail).toContain('SALLYPORT_AGENT_PENDING_RUNS');
    }
    scene.fill(false);
    expect(await (await scene.ask('GET', `/threads/${threadId}/runs`)).json()).toEqual([]);
  });

  it('delete stops a run and removes it', async () => {
    const threadId = await scene.addThread();
    const run = await create(threadId);
    const { options } = await scene.started(run.run_id);
    const path = `/threads/${threadId}/runs/${run.run_id}`;
    const cancelled = new Promise((resolve) => options.cancel.addEventListener('abort', resolve));
    expect((await scene.ask('DELETE', path)).status).toBe(204);
    await cancelled;
    expect((await scene.ask('DELETE', path)).status).toBe(404);
    const { db } = scene.database.store;
    const thread = db.selectFrom('agent_threads').select('status').where('thread_id', '=', threadId);
    expect(await thread.execute()).toEqual([{ status: 'idle' }]);
  });

  it.each([
    ['POST', `/threads/${randomUUID()}/runs`, body, 404],
    ['POST', '/threads/x/runs', body, 422],
    ['POST', '/runs', { assistant_id: 'absent' }, 404],
    ['POST', '/runs', { assistant_id: randomUUID() }, 404],
    ['POST', '/runs', { ...body, stream_mode: 'all' }, 422],
    ['POST', '/runs', { ...body, after_seconds: -1 }, 422],
    ['POST', '/runs', { ...body, webhook: 'https://example.test' }, 501],
    ['GET', `/threads/${randomUUID()}/runs`, undefined, 404],
    ['GET', `/threads/${randomUUID()}/runs?limit=0`, undefined, 422],
    ['GET', `/threads/${randomUUID()}/runs?limit=1001`, undefined, 422],
    ['GET', `/threads/${randomUUID()}/runs?select=secret`, undefined, 422],
    ['GET', `/threads/${randomUUID()}/runs/${randomUUID()}/stream`, undefined, 404],
    ['GET', `/threads/${randomUUID()}/runs/${randomUUID()}/join`, undefined, 404],
  ])('%s %s %j is %i, and writes nothing', async (method, path, given, status) => {
    const { db } = scene.database.store;
    const count = () =>
      db
        .selectFrom('agent_runs')
        .select(({ fn }) => fn.countAll<string>().as('runs'))
        .executeTakeFirstOrThrow();
    const before = await count();
    expect((await scene.ask(method, path, { body: given })).status).toBe(status);
    expect(await count()).toEqual(before);
  });

  it('a thread is created where it may be, and reject refuses a busy one', async () => {
    const threadId = randomUUID();
    const run = await create(threadId, { if_not_exists: 'create', after_seconds: 3600 });
    expect(run).toMatchObject({ thread_id: threadId, status: 'pending' });
    const path = `/threads/${threadId}/runs`;
    const refused = await scene.ask('POST', path, { body: { ...body, multitask_strategy: 'reject' } });
    expect(refused.status).toBe(409);
    expect(await (await scene.ask('GET', path)).json()).toHaveLength(1);
  });

  it('a thread may have an id of any version, in capitals too, and its runs have their checkpoints', async () => {
    const threadId = 'aaaaaaaa-1111-1111-1111-111111111111';
    const path = `/threads/${threadId.toUpperCase()}/runs`;
    const made = await scene.ask('POST', path, { body: { ...body, if_not_exists: 'create' } });
    const run = await made.json();
    expect([made.status, run.thread_id]).toEqual([200, threadId]);
    const { options, end } = await scene.started(run.run_id);
    const place = { thread_id: threadId, checkpoint_ns: '' };
    expect(await options.checkpoints.handle('checkpoint.get', place)).toBeNull();
    end({ n: 1 });
    const join = await scene.ask('GET', `/threads/${threadId}/runs/${run.run_id}/join`);
    expect(await join.json()).toEqual({ n: 1 });
  });

  it('a thread that ends with its run takes no other run', async () => {
    const run = await (await scene.ask('POST', '/runs', { body })).json();
    const path = `/threads/${run.thread_id}/runs`;
    expect((await scene.ask('POST', path, { body })).status).toBe(404);
    expect(await (await scene.ask('GET', path)).json()).toHaveLength(1);
    (await scene.started(run.run_id)).end();
    await (await scene.ask('GET', `${path}/${run.run_id}/join`)).text();
  });
});

describe('of a thread that a user may read and not change', () => {
  let scene: RunsScene;

  beforeAll(async () => {
    const auth = ownerAuth()
      .on('threads:read', () => ({ access: 'public' }))
      .on('threads:update', ({ user }) => ({ owner: user.identity }));
    scene = await createRunsScene(handlerGate(auth));
  });
  afterAll(() => scene?.[Symbol.asyncDispose]());

  it('no run ends because the reader leaves', async () => {
    const threadId = await scene.addThread({ owner: 'ada', access: 'public' });
    const path = `/threads/${threadId}/runs`;
    const run = await (await scene.ask('POST', path, { body, as: 'ada' })).json();
    const one = `${path}/${run.run_id}`;
    const { end } = await scene.started(run.run_id);
    const asks = '?cancel_on_disconnect=true';
    expect((await scene.ask('GET', `${one}/join${asks}`, { as: 'bob' })).status).toBe(404);
    for (const at of [one, `/runs/${run.run_id}`])
      expect(await (await scene.ask('GET', `${at}/stream${asks}`, { as: 'bob' })).text()).toContain('404');
    const joined = await scene.ask('GET', `${one}/join`, { as: 'bob' });
    const allowed = await scene.ask('GET', `${one}/join${asks}`, { as: 'ada' });
    end({ n: 1 });
    expect([await joined.json(), await allowed.json()]).toEqual([{ n: 1 }, { n: 1 }]);
  });
});

describe('of two users', () => {
  let scene: RunsScene;

  beforeAll(async () => {
    scene = await createRunsScene(handlerGate(ownerAuth()));
  });
  afterAll(() => scene?.[Symbol.asyncDispose]());

  it('neither finds what is of the other', async () => {
    const threadId = await scene.addThread({ owner: 'ada' });
    const path = `/threads/${threadId}/runs`;
    const run = await (
      await scene.ask('POST', path, { body: { ...body, after_seconds: 3600 }, as: 'ada' })
    ).json();
    expect(run.metadata).toMatchObject({ owner: 'ada' });
    const one = `${path}/${run.run_id}`;
    const many = { run_ids: [run.run_id] };
    const statuses = async (as: string) => [
      (await scene.ask('GET', path, { as })).status,
      (await scene.ask('GET', one, { as })).status,
      (await scene.ask('POST', path, { body, as })).status,
      (await scene.ask('POST', `${one}/cancel`, { as })).status,
      (await scene.ask('POST', '/runs/cancel', { body: many, as })).status,
      (await scene.ask('DELETE', one, { as })).status,
    ];
    expect(await statuses('bob')).toEqual([404, 404, 404, 404, 404, 404]);
    expect((await scene.ask('GET', `${one}/join`, { as: 'bob' })).status).toBe(404);
    const all = await scene.ask('POST', '/runs/cancel', { body: { status: 'all' }, as: 'bob' });
    expect(all.status).toBe(204);
    const foreign = await (await scene.ask('GET', `${one}/stream`, { as: 'bob' })).text();
    const absent = await scene.ask('GET', `${path}/${randomUUID()}/stream`, { as: 'bob' });
    expect(foreign).toContain('404');
    expect(await absent.text()).toBe(foreign);
    const shown = await (await scene.ask('GET', one, { as: 'ada' })).json();
    expect(shown).toMatchObject({ status: 'pending' });
    expect(await statuses('ada')).toEqual([200, 200, 200, 202, 204, 204]);
  });

  it('no config names the user of a run or of its thread', async () => {
    const faked = { graph_auth_user: { identity: 'ada' }, langgraph_auth_user: {}, __pregel_store: {} };
    const config = { configurable: { ...faked, model: 'm' } };
    const checkpoint = { checkpoint_ns: '', ...faked };
    const asked = await scene.ask('POST', '/runs', {
      body: { ...body, config, checkpoint, on_completion: 'keep', after_seconds: 3600 },
      as: 'bob',
    });
    const run = await asked.json();
    expect(Object.keys(run.kwargs.config.configurable)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/auth_user|__pregel/)]),
    );
    const { db } = scene.database.store;
    const thread = db.selectFrom('agent_threads').select('config').where('thread_id', '=', run.thread_id);
    expect((await thread.executeTakeFirstOrThrow()).config).toEqual({ configurable: { model: 'm' } });
  });
});
