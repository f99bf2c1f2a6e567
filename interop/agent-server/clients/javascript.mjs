// `@langchain/langgraph-sdk`, unchanged: every method for assistants, threads and runs, against the URL in the first argument.
import { randomUUID } from 'node:crypto';
import { Client } from '@langchain/langgraph-sdk';
import { all, end, equal, ok, statusOf, test } from './report.mjs';

const apiUrl = process.argv[2];
const client = new Client({ apiUrl, apiKey: null, callerOptions: { maxRetries: 0 } });
const { assistants, threads, runs } = client;
const nobody = randomUUID();

const newThread = async (more) => (await threads.create(more)).thread_id;
const events = (parts) => parts.map(({ event }) => event);

// Assistants
let assistant;
await test('assistants.search finds the default assistant of each graph', async () => {
  const found = await assistants.search({ limit: 100, metadata: { created_by: 'system' } });
  equal(found.map(({ graph_id }) => graph_id).toSorted(), [
    'approval',
    'chat',
    'failing',
    'loop',
    'nested',
    'report',
    'steps',
  ]);
});
await test('assistants.create', async () => {
  assistant = await assistants.create({
    graphId: 'report',
    name: 'mine',
    description: 'one',
    metadata: { a: 1 },
    config: { configurable: { style: 'first' } },
  });
  equal(
    [assistant.graph_id, assistant.version, assistant.name, assistant.description],
    ['report', 1, 'mine', 'one'],
  );
});
await test('assistants.create with an id that exists: 409, or the old one with do_nothing', async () => {
  const assistantId = assistant.assistant_id;
  equal(await statusOf(() => assistants.create({ graphId: 'report', assistantId })), 409);
  const same = await assistants.create({
    graphId: 'report',
    assistantId,
    ifExists: 'do_nothing',
    name: 'other',
  });
  equal([same.assistant_id, same.name], [assistantId, 'mine']);
});
await test('assistants.get, also by graph id', async () => {
  equal((await assistants.get(assistant.assistant_id)).name, 'mine');
  equal((await assistants.get('steps')).graph_id, 'steps');
  equal(await statusOf(() => assistants.get(nobody)), 404);
});
await test('assistants.update makes a version, merges metadata', async () => {
  const made = await assistants.update(assistant.assistant_id, {
    metadata: { b: 2 },
    config: { configurable: { style: 'second' } },
  });
  equal(
    [made.version, made.metadata.a, made.metadata.b, made.config.configurable.style],
    [2, 1, 2, 'second'],
  );
  const renamed = await assistants.update(assistant.assistant_id, { name: 'renamed' });
  equal([renamed.version, renamed.name], [3, 'renamed']);
});
await test('assistants.getVersions, newest first', async () => {
  equal(
    (await assistants.getVersions(assistant.assistant_id)).map(({ version }) => version),
    [3, 2, 1],
  );
  equal(
    (await assistants.getVersions(assistant.assistant_id, { limit: 1, offset: 1 })).map(
      ({ version }) => version,
    ),
    [2],
  );
});
await test('assistants.setLatest restores a version, which runs use', async () => {
  const old = await assistants.setLatest(assistant.assistant_id, 1);
  equal([old.version, old.name, old.config.configurable.style], [1, 'mine', 'first']);
  const { seen } = await runs.wait(null, assistant.assistant_id, { input: {} });
  equal([seen.style, seen.styleOfFactory, seen.greeting], ['first', 'first', 'hello']);
  equal(await statusOf(() => assistants.setLatest(assistant.assistant_id, 99)), 404);
});
await test('assistants.search by name, with pages and a selection', async () => {
  await assistants.create({ graphId: 'report', name: 'MINE too' });
  equal((await assistants.search({ name: 'mine' })).length, 2);
  const { assistants: page, next } = await assistants.search({
    limit: 2,
    sortBy: 'created_at',
    sortOrder: 'asc',
    includePagination: true,
  });
  equal([page.length, next], [2, '2']);
  equal(Object.keys((await assistants.search({ limit: 1, select: ['assistant_id'] }))[0]), ['assistant_id']);
});
await test('assistants.count', async () => {
  equal(await assistants.count({ graphId: 'report', name: 'mine' }), 2);
  equal(await assistants.count({ metadata: { a: 1 } }), 1);
});
await test('assistants.getGraph, with xray', async () => {
  const drawn = await assistants.getGraph('steps');
  equal(drawn.nodes.map(({ id }) => id).toSorted(), ['__end__', '__start__', 'one', 'three', 'two']);
  ok(
    (await assistants.getGraph('nested', { xray: true })).nodes.some(({ id }) => id === 'inside:deep'),
    'no inner node',
  );
});
await test('assistants.getSchemas', async () => {
  const schemas = await assistants.getSchemas('steps');
  equal(schemas.graph_id, 'steps');
  // A server that does not read the types of a graph has none.
  ok(schemas.state_schema === null || 'trail' in schemas.state_schema.properties, 'no property trail');
});
await test('assistants.delete', async () => {
  const { assistant_id: id } = await assistants.create({ graphId: 'steps' });
  await assistants.delete(id);
  equal(await statusOf(() => assistants.get(id)), 404);
  equal(await statusOf(() => assistants.delete(id)), 404);
});

// Threads
let thread;
await test('threads.create, with an id, metadata and what to do when it exists', async () => {
  thread = randomUUID();
  equal((await threads.create({ threadId: thread, metadata: { kind: 'first' } })).status, 'idle');
  equal(await statusOf(() => threads.create({ threadId: thread })), 409);
  equal((await threads.create({ threadId: thread, ifExists: 'do_nothing' })).metadata.kind, 'first');
});
await test('threads.get', async () => {
  equal((await threads.get(thread)).thread_id, thread);
  equal(await statusOf(() => threads.get(nobody)), 404);
});
await test('threads.update merges metadata, and returns nothing when asked', async () => {
  const { metadata } = await threads.update(thread, { metadata: { more: true } });
  equal([metadata.kind, metadata.more], ['first', true]);
  equal(await threads.update(thread, { metadata: { last: 1 }, returnMinimal: true }), undefined);
});
await test('threads.search and threads.count', async () => {
  await runs.wait(thread, 'steps', { input: { count: 5 } });
  equal(
    (await threads.search({ metadata: { kind: 'first' } })).map(({ thread_id }) => thread_id),
    [thread],
  );
  equal((await threads.search({ ids: [thread], values: { count: 8 } })).length, 1);
  equal((await threads.search({ ids: [thread], status: 'busy' })).length, 0);
  equal(
    Object.keys((await threads.search({ ids: [thread], select: ['thread_id', 'status'] }))[0]).toSorted(),
    ['status', 'thread_id'],
  );
  equal(await threads.count({ metadata: { kind: 'first' } }), 1);
});
await test('threads.getState, updateState and getHistory', async () => {
  const state = await threads.getState(thread);
  equal([state.values.trail, state.next], [['one', 'two', 'three'], []]);
  const { checkpoint } = await threads.updateState(thread, { values: { trail: ['by hand'] }, asNode: 'one' });
  const updated = await threads.getState(thread);
  equal([updated.values.trail.at(-1), updated.next], ['by hand', ['two']]);
  equal((await threads.getState(thread, checkpoint.checkpoint_id)).values.trail.at(-1), 'by hand');
  equal(
    (await threads.getState(thread, { ...checkpoint, checkpoint_ns: '' })).values.trail.at(-1),
    'by hand',
  );
  const history = await threads.getHistory(thread, { limit: 100 });
  equal([history.length, history[0].checkpoint.checkpoint_id], [6, checkpoint.checkpoint_id]);
  equal(
    (
      await threads.getHistory(thread, {
        limit: 2,
        before: { configurable: { checkpoint_id: history[1].checkpoint.checkpoint_id } },
      })
    ).length,
    2,
  );
  equal((await threads.getHistory(thread, { metadata: { source: 'update' } })).length, 1);
});
await test('threads.copy', async () => {
  const copy = await threads.copy(thread);
  ok(copy.thread_id !== thread, 'the same id');
  const [one, two] = [await threads.getState(thread), await threads.getState(copy.thread_id)];
  equal(two.values, one.values);
  equal(await statusOf(() => threads.copy(nobody)), 409);
});
await test('threads.delete', async () => {
  const id = await newThread();
  await threads.delete(id);
  equal(await statusOf(() => threads.get(id)), 404);
});
await test('threads.joinStream follows the runs of a thread', async () => {
  const id = await newThread();
  const signal = new AbortController();
  const joined = [];
  const reading = (async () => {
    for await (const part of threads.joinStream(id, { signal: signal.signal })) {
      joined.push(part);
      if (part.event === 'values' && part.data?.trail?.length === 3) break;
    }
  })().then(
    () => undefined,
    (error) => (error.name === 'AbortError' ? undefined : error),
  );
  await runs.wait(id, 'steps', { input: {}, streamMode: ['values'] });
  const timer = setTimeout(() => signal.abort(), 5_000);
  const error = await reading;
  clearTimeout(timer);
  if (error) throw error;
  ok(joined.length > 0, 'nothing was streamed');
});

// Runs
await test('runs.create, get, list, join', async () => {
  const id = await newThread();
  let location;
  const run = await runs.create(id, 'steps', {
    input: {},
    metadata: { m: 1 },
    onRunCreated: (made) => (location = made),
  });
  equal([location.run_id, location.thread_id], [run.run_id, id]);
  equal((await runs.join(id, run.run_id)).trail, ['one', 'two', 'three']);
  const got = await runs.get(id, run.run_id);
  equal([got.status, got.metadata.m, got.multitask_strategy !== undefined], ['success', 1, true]);
  equal(
    (await runs.list(id)).map(({ run_id }) => run_id),
    [run.run_id],
  );
  equal((await runs.list(id, { status: 'error' })).length, 0);
  equal(await statusOf(() => runs.get(id, nobody)), 404);
});
await test('runs.wait, on a thread and without', async () => {
  equal((await runs.wait(await newThread(), 'steps', { input: {} })).count, 3);
  equal((await runs.wait(null, 'steps', { input: {} })).count, 3);
});
await test('runs.wait of a graph that throws', async () => {
  const result = await runs.wait(await newThread(), 'failing', { input: {}, raiseError: false });
  ok(/Boo!/.test(JSON.stringify(result.__error__)), JSON.stringify(result));
  await runs.wait(null, 'failing', { input: {} }).then(
    () => ok(false, 'no error'),
    (error) => ok(/Boo!/.test(error.message), error.message),
  );
});
for (const [modes, wanted] of [
  [['values'], ['metadata', 'values', 'values', 'values']],
  [['updates'], ['metadata', 'updates', 'updates', 'updates']],
  [['custom'], ['metadata', 'custom', 'custom', 'custom']],
  [
    ['updates', 'custom'],
    ['metadata', 'custom', 'updates', 'custom', 'updates', 'custom', 'updates'],
  ],
])
  await test(`runs.stream, ${modes.join(' and ')}`, async () => {
    const seen = events(await all(runs.stream(await newThread(), 'steps', { input: {}, streamMode: modes })));
    equal(
      seen.toSorted(),
      (modes[0] === 'values' && seen.length === 5 ? [...wanted, 'values'] : wanted).toSorted(),
    );
    equal(seen[0], 'metadata');
  });
for (const mode of ['debug', 'tasks', 'checkpoints', 'events'])
  await test(`runs.stream, ${mode}`, async () => {
    const seen = new Set(
      events(await all(runs.stream(await newThread(), 'steps', { input: {}, streamMode: [mode] }))),
    );
    ok(seen.has(mode) && seen.size === 2, [...seen].join());
  });
await test('runs.stream, messages', async () => {
  const input = { messages: [{ type: 'human', content: 'hi', id: 'one' }] };
  const seen = await all(runs.stream(await newThread(), 'chat', { input, streamMode: ['messages'] }));
  ok(
    seen.some(({ event }) => event === 'messages/metadata'),
    events(seen).join(),
  );
  const partial = seen.filter(({ event }) => event === 'messages/partial' || event === 'messages/complete');
  equal(partial.at(-1).data[0].content, 'you said hi');
});
await test('runs.stream, messages-tuple', async () => {
  const input = { messages: [{ type: 'human', content: 'hi' }] };
  const seen = await all(runs.stream(await newThread(), 'chat', { input, streamMode: ['messages-tuple'] }));
  const text = seen
    .filter(({ event }) => event === 'messages')
    .map(({ data }) => data[0].content)
    .join('');
  ok(text.includes('you said hi'), text);
});
await test('runs.stream of subgraphs', async () => {
  const seen = await all(
    runs.stream(await newThread(), 'nested', { input: {}, streamMode: ['updates'], streamSubgraphs: true }),
  );
  ok(
    events(seen).some((event) => /^updates\|inside:/.test(event)),
    events(seen).join(),
  );
});
await test('runs.stream of a graph that throws ends with an error', async () => {
  const seen = await all(runs.stream(await newThread(), 'failing', { input: {}, streamMode: ['values'] }));
  equal([seen.at(-1).event, seen.at(-1).data.error, seen.at(-1).data.message], ['error', 'BooError', 'Boo!']);
});
await test('runs.stream with feedback keys, without a thread', async () => {
  const seen = events(
    await all(runs.stream(null, 'steps', { input: {}, streamMode: 'values', feedbackKeys: ['score'] })),
  );
  equal(seen[0], 'metadata');
});
await test('an interrupt, then resume, update and goto', async () => {
  const id = await newThread();
  const asked = await runs.wait(id, 'approval', { input: { request: 'may I?' } });
  equal(asked.__interrupt__?.[0]?.value ?? (await threads.getState(id)).tasks[0].interrupts[0].value, {
    question: 'may I?',
  });
  equal((await threads.get(id)).status, 'interrupted');
  equal((await threads.getState(id)).next, ['ask']);
  equal((await runs.wait(id, 'approval', { command: { resume: 'yes' } })).decision, 'approved');
  equal((await threads.get(id)).status, 'idle');
  const gone = await runs.wait(id, 'approval', { command: { update: { decision: 'no' }, goto: 'act' } });
  equal(gone.decision, 'refused: no');
});
await test('interruptBefore and interruptAfter', async () => {
  const id = await newThread();
  const trail = async () => (await threads.getState(id)).values.trail;
  await runs.wait(id, 'steps', { input: {}, interruptBefore: ['two'] });
  equal(await trail(), ['one']);
  await runs.wait(id, 'steps', { input: null, interruptAfter: ['two'] });
  equal(await trail(), ['one', 'two']);
  equal((await runs.wait(id, 'steps', { input: null })).trail, ['one', 'two', 'three']);
});
await test('a run from a checkpoint', async () => {
  const id = await newThread();
  await runs.wait(id, 'steps', { input: {} });
  const history = await threads.getHistory(id, { limit: 10 });
  const afterOne = history.find(({ next }) => next[0] === 'two');
  const again = await runs.wait(id, 'steps', {
    input: null,
    checkpointId: afterOne.checkpoint.checkpoint_id,
  });
  equal(again.trail, ['one', 'two', 'three']);
});
await test('multitaskStrategy: reject, enqueue, interrupt, rollback', async () => {
  const id = await newThread();
  const long = () =>
    runs.create(id, 'loop', { input: { rounds: 200, pause: 20 }, multitaskStrategy: 'enqueue' });
  const short = { input: { rounds: 1, pause: 1 } };
  const first = await long();
  ok(
    (await statusOf(() => runs.create(id, 'loop', { ...short, multitaskStrategy: 'reject' }))) >= 409,
    'not rejected',
  );
  const queued = await runs.create(id, 'loop', { ...short, multitaskStrategy: 'enqueue' });
  equal((await runs.get(id, queued.run_id)).status, 'pending');
  await runs.cancel(id, first.run_id, true);
  await runs.join(id, queued.run_id);
  equal((await runs.get(id, queued.run_id)).status, 'success');
  const second = await long();
  const interrupting = await runs.create(id, 'loop', { ...short, multitaskStrategy: 'interrupt' });
  await runs.join(id, interrupting.run_id);
  equal((await runs.get(id, second.run_id)).status, 'interrupted');
  const third = await long();
  const rolling = await runs.create(id, 'loop', { ...short, multitaskStrategy: 'rollback' });
  await runs.join(id, rolling.run_id);
  equal(await statusOf(() => runs.get(id, third.run_id)), 404);
});
await test('runs.cancel and runs.cancelMany', async () => {
  const id = await newThread();
  const create = () =>
    runs.create(id, 'loop', { input: { rounds: 500, pause: 20 }, multitaskStrategy: 'enqueue' });
  const one = await create();
  await runs.cancel(id, one.run_id, true);
  equal((await runs.get(id, one.run_id)).status, 'interrupted');
  const two = await create();
  await runs.cancelMany({ threadId: id, runIds: [two.run_id], action: 'interrupt' });
  await runs.join(id, two.run_id);
  equal((await runs.get(id, two.run_id)).status, 'interrupted');
  const three = await create();
  await runs.cancel(id, three.run_id, true, 'rollback');
  equal(await statusOf(() => runs.get(id, three.run_id)), 404);
  equal(await statusOf(() => runs.cancel(id, nobody)), 404);
});
await test('runs.delete', async () => {
  const id = await newThread();
  const run = await runs.create(id, 'steps', { input: {} });
  await runs.join(id, run.run_id);
  await runs.delete(id, run.run_id);
  equal(await statusOf(() => runs.get(id, run.run_id)), 404);
});
await test('runs.joinStream of a resumable run, from its start and from the middle', async () => {
  const id = await newThread();
  const run = await runs.create(id, 'steps', { input: {}, streamMode: ['updates'], streamResumable: true });
  const whole = await all(runs.joinStream(id, run.run_id, { streamMode: ['updates'], lastEventId: '-1' }));
  equal(events(whole), ['metadata', 'updates', 'updates', 'updates']);
  const rest = await all(
    runs.joinStream(id, run.run_id, { streamMode: ['updates'], lastEventId: whole[1].id }),
  );
  equal(rest, whole.slice(2));
});
await test('afterSeconds, ifNotExists, onCompletion, durability, context', async () => {
  const id = randomUUID();
  const run = await runs.create(id, 'steps', { input: {}, ifNotExists: 'create', afterSeconds: 1 });
  equal((await runs.get(id, run.run_id)).status, 'pending');
  equal((await runs.join(id, run.run_id)).count, 3);
  for (const durability of ['sync', 'async', 'exit'])
    equal((await runs.wait(await newThread(), 'steps', { input: {}, durability })).count, 3);
  equal(
    (await runs.wait(null, 'report', { input: {}, context: { tone: 'dry' }, onCompletion: 'delete' })).seen
      .context,
    { tone: 'dry' },
  );
});
await test('onDisconnect cancel ends the run of a client that leaves', async () => {
  const id = await newThread();
  const signal = new AbortController();
  let run;
  try {
    for await (const part of runs.stream(id, 'loop', {
      input: { rounds: 1_000, pause: 20 },
      onDisconnect: 'cancel',
      signal: signal.signal,
      streamMode: 'values',
    })) {
      run ??= part.data.run_id;
      if (part.event === 'values') signal.abort();
    }
  } catch (error) {
    if (error.name !== 'AbortError') throw error;
  }
  await runs.join(id, run);
  equal((await runs.get(id, run)).status, 'interrupted');
});
end();
