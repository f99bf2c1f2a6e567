// The public JavaScript client of traces, unchanged: what it sends, and what it reads back. The same steps as python_client.py.
//
//   node javascript.mjs tree|load|whole ENDPOINT KEY PROJECT
import { Client } from 'langsmith';
import { getCurrentRunTree, traceable } from 'langsmith/traceable';

const [scenario, endpoint, key, project] = process.argv.slice(2);
const client = new Client({ apiUrl: endpoint, apiKey: key });
const shared = { client, project_name: project, tracingEnabled: true };

function report(step, value) {
  process.stdout.write(`${JSON.stringify({ step, value })}\n`);
}

/** The name of the error's class, and its status where it has one. */
async function errorOf(work) {
  try {
    await work();
    return 'no error';
  } catch (error) {
    return error.status ?? error.name;
  }
}

const namesOf = async (runs) => (await Array.fromAsync(runs)).map(({ name }) => name).toSorted();

// What is traced.

const lookup = traceable(async (topic) => ({ documents: [`All about ${topic}`] }), {
  ...{ ...shared, name: 'lookup', run_type: 'retriever', metadata: { source: 'wiki' } },
});

/** Its tokens are events, of which the first one has a time. */
const model = traceable(
  async function* (_prompt) {
    yield { content: 'Be' };
    yield { content: 'cause.' };
  },
  {
    ...{ ...shared, name: 'model', run_type: 'llm', metadata: { ls_model_name: 'a-model' } },
    aggregator: (pieces) => ({
      messages: [{ role: 'assistant', content: pieces.map(({ content }) => content).join('') }],
      usage_metadata: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
    }),
  },
);

const failing = traceable(
  async () => {
    throw new Error('there is no such page');
  },
  { ...shared, name: 'failing', run_type: 'tool', tags: ['writes'] },
);

const attaching = traceable(async () => ({ stored: true }), {
  ...{ ...shared, name: 'attaching', run_type: 'tool' },
  extractAttachments: ({ attachments, ...inputs }) => [attachments, inputs],
});

const attachments = {
  note: ['text/plain', new TextEncoder().encode('a note\n')],
  bytes: ['application/octet-stream', Uint8Array.from({ length: 70_000 }, (_, at) => at % 251)],
};

async function collect(pieces) {
  const collected = [];
  for await (const { content } of pieces) collected.push(content);
  return collected.join('');
}

/** Returns the ids of its runs by their names. */
async function converse(name, thread, { fails = false } = {}) {
  let id = '';
  const run = traceable(
    async ({ question }) => {
      id = getCurrentRunTree().id;
      await lookup(question);
      const reply = await collect(await model({ question }));
      await failing().catch(() => undefined);
      await attaching({ attachments, folder: 'notes' });
      if (fails) throw new Error('the conversation has ended');
      return { reply };
    },
    {
      ...{ ...shared, name, run_type: 'chain', tags: ['first', 'second'] },
      metadata: { session_id: thread, env: 'prod', attempt: 2 },
    },
  );
  await run({ question: 'Why?', nested: { deep: [1, 2.5, null, '\u{1F600}'] } }).catch(() => undefined);
  return id;
}

async function readAttachments(run) {
  const read = {};
  for (const [name, { presigned_url: address, mime_type: type }] of Object.entries(run.s3_urls ?? {})) {
    const response = await fetch(new URL(address, endpoint));
    const bytes = Buffer.from(await response.arrayBuffer());
    const original = attachments[name.replace('attachment.', '')]?.[1] ?? '';
    read[name] = [type, response.status, bytes.equals(Buffer.from(original))];
  }
  return read;
}

// Scenarios.

async function tree() {
  const id = await converse('conversation', 'thread-1');
  await client.awaitPendingTraceBatches();
  const run = await client.readRun(id, { loadChildRuns: true });
  report('root', [run.name, run.run_type, run.status, run.inputs, run.outputs, run.tags.toSorted()]);
  report('metadata', [run.extra.metadata.session_id, run.extra.metadata.env, run.extra.metadata.attempt]);
  report('children', run.child_runs.map(({ name, status }) => [name, status]).toSorted());
  const children = Object.fromEntries(run.child_runs.map((child) => [child.name, child]));
  report('error', children.failing.error.split('\n')[0]);
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = children.model;
  report('tokens', [prompt, completion, total]);
  report('first token', typeof children.model.first_token_time);
  report('attachments', await readAttachments(await client.readRun(children.attaching.id)));
  return { id, children };
}

async function feedback(id) {
  await client.createFeedback(id, 'helpful', { score: 0.75, comment: 'Short.' });
  const created = await client.createFeedback(id, 'colour', {
    ...{ value: 'green', correction: { colour: 'red' }, feedbackSourceType: 'model' },
  });
  const read = await client.readFeedback(created.id);
  report('feedback', [read.key, read.score, read.value, read.correction, read.feedback_source.type]);
  await client.updateFeedback(created.id, { score: 1, comment: 'Better.' });
  const { score, comment, value } = await client.readFeedback(created.id);
  report('updated feedback', [score, comment, value]);
  const listed = await Array.fromAsync(client.listFeedback({ runIds: [id] }));
  report('feedback of the run', listed.map(({ key: one }) => one).toSorted());
  const ofModels = await Array.fromAsync(
    client.listFeedback({ runIds: [id], feedbackSourceTypes: ['model'] }),
  );
  report(
    'feedback of models',
    ofModels.map(({ key: one }) => one),
  );
  report('feedback_stats', (await client.readRun(id)).feedback_stats.helpful);
}

const FILTERS = [
  'eq(name, "model")',
  'and(eq(run_type, "llm"), gt(total_tokens, 10))',
  'neq(error, null)',
  'and(neq(error, null), eq(is_root, true))',
  'eq(status, "error")',
  'has(tags, "writes")',
  `has(metadata, '{"source": "wiki"}')`,
  'and(eq(metadata_key, "env"), eq(metadata_value, "prod"))',
  'and(in(metadata_key, ["session_id", "conversation_id", "thread_id"]), eq(metadata_value, "thread-2"), eq(is_root, true))',
  'and(eq(feedback_key, "helpful"), gte(feedback_score, 0.5))',
  'and(eq(input_key, "question"), eq(input_value, "Why?"), eq(is_root, true))',
  'search("no such page")',
  'gt(latency, "2m")',
  'lt(latency, 3600)',
  'and(gt(start_time, "2023-07-15T12:34:56Z"), or(eq(name, "lookup"), not(neq(name, "attaching"))))',
];

async function queries(id) {
  const list = (props) => namesOf(client.listRuns({ projectName: project, ...props }));
  for (const filter of FILTERS) report(filter, await list({ filter }));
  report('is root', await list({ isRoot: true }));
  report('run type', await list({ runType: 'tool' }));
  report('with an error', await list({ error: true, isRoot: true }));
  report('trace', (await list({ traceId: id })).length);
  report('parent', await list({ parentRunId: id }));
  report('query', await list({ query: 'All about' }));
  report('trace filter', await list({ filter: 'eq(run_type, "llm")', traceFilter: 'eq(status, "error")' }));
  report('tree filter', await list({ isRoot: true, treeFilter: 'eq(name, "attaching")' }));
  report('limit', (await list({ limit: 4 })).length);
  report('ids', await namesOf(client.listRuns({ id: [id] })));
  report('since', await list({ startTime: new Date(Date.now() + 60_000) }));
  const inOrder = (order) =>
    Array.fromAsync(client.listRuns({ projectName: project, isRoot: true, order }), ({ name }) => name);
  report('ascending', await inOrder('asc'));
  report('descending', await inOrder('desc'));
  const thread = client.readThread({ threadId: 'thread-1', projectName: project });
  report('thread', await Array.fromAsync(thread, ({ name }) => name));
  const threads = await client.listThreads({ projectName: project });
  report('threads', threads.map(({ thread_id: one, count }) => [one, count]).toSorted());
  report('422', await errorOf(() => list({ filter: 'eq(name' })));
  report('no such run', await errorOf(() => client.readRun('0192f0c1-6f2b-7000-8000-00000000000a')));
}

async function stats() {
  const all = await client.getRunStats({ projectNames: [project] });
  report('stats', [all.run_count, all.total_tokens, typeof all.latency_p50]);
  const failed = await client.getRunStats({ projectNames: [project], filter: 'eq(status, "error")' });
  report('stats of errors', [failed.run_count, failed.error_rate]);
}

async function projects() {
  const name = `${project} made by hand`;
  report('has no project', await client.hasProject({ projectName: name }));
  const made = await client.createProject({ projectName: name, description: 'first', metadata: { a: 1 } });
  report('project', [made.name.replace(project, 'P'), made.description, made.extra.metadata]);
  report('409', await errorOf(() => client.createProject({ projectName: name })));
  const again = await client.createProject({ projectName: name, description: 'second', upsert: true });
  report('upsert', again.id === made.id);
  report('has project', await client.hasProject({ projectName: name }));
  await client.updateProject(made.id, { description: 'third' });
  report('updated', (await client.readProject({ projectId: made.id })).description);
  const listed = await Array.fromAsync(client.listProjects({ nameContains: project }));
  report('projects', listed.map((one) => one.name.replace(project, 'P')).toSorted());
  const withStats = await client.readProject({ projectName: project, includeStats: true });
  report('project stats', [withStats.run_count, typeof withStats.latency_p50]);
  await client.deleteProject({ projectName: name });
  report('deleted', [
    await client.hasProject({ projectName: name }),
    await errorOf(() => client.readProject({ projectName: name })),
  ]);
}

async function whole() {
  const { id } = await tree();
  await converse('later', 'thread-1');
  await converse('broken', 'thread-2', { fails: true });
  await client.awaitPendingTraceBatches();
  await feedback(id);
  await queries(id);
  await stats();
  await projects();
}

/** Runs that begin in one request and end in another one. Reports what must be there. */
async function load() {
  const expected = [];
  const bursts = 12;
  for (let burst = 0; burst < bursts; burst += 1) {
    const one = async (_, at) => {
      const n = burst * 3 + at;
      const step = traceable(
        async ({ n: given, text }) => {
          expected.push(expectedOf(getCurrentRunTree(), { n: given, text }, { length: text.length }));
          return { length: text.length };
        },
        { ...shared, name: `step ${n}`, run_type: 'tool' },
      );
      const root = traceable(
        async ({ text }) => {
          const tree = getCurrentRunTree();
          const { length } = await step({ n, text });
          await client.awaitPendingTraceBatches();
          expected.push(expectedOf(tree, { text }, { length, n }));
          return { length, n };
        },
        { ...shared, name: `load ${n}`, run_type: 'chain' },
      );
      await root({ text: 'x'.repeat(1_000 * (n % 7)) + String(n) });
    };
    await Promise.all(Array.from({ length: 3 }, one));
    await client.awaitPendingTraceBatches();
  }
  report('expected', expected);
}

function expectedOf({ id, name, parent_run: parent }, inputs, outputs) {
  return { id, name, parent: parent?.id ?? null, inputs, outputs };
}

// The client says of calls of its API that a later one will replace them.
process.noDeprecation = true;
await { tree, whole, load }[scenario]();
