// The cases of the differential: each plays its calls on one side, and knows only what that side has returned.
const NOBODY = '00000000-0000-4000-8000-000000000000';
const newThread = async (call, body = {}) => (await call('POST', '/threads', body)).thread_id;

const streams = [
  'values',
  'updates',
  'custom',
  'messages',
  'messages-tuple',
  'tasks',
  'checkpoints',
  'debug',
].flatMap((mode) => [
  [
    `stream of steps, ${mode}`,
    async (call) => {
      const id = await newThread(call);
      await call('POST', `/threads/${id}/runs/stream`, {
        assistant_id: 'steps',
        input: {},
        stream_mode: [mode],
      });
    },
  ],
]);

const invalid = [
  ['POST', '/assistants', {}],
  ['POST', '/assistants', { graph_id: 'none' }],
  ['POST', '/assistants', '{'],
  ['GET', '/assistants/none'],
  ['GET', `/assistants/${NOBODY}`],
  ['PATCH', `/assistants/${NOBODY}`, { name: 'x' }],
  ['DELETE', `/assistants/${NOBODY}`],
  ['POST', `/assistants/${NOBODY}/versions`, {}],
  ['POST', `/assistants/${NOBODY}/latest`, { version: 1 }],
  ['POST', '/assistants/search', { limit: 0 }],
  ['POST', '/assistants/search', { limit: 1001 }],
  ['POST', '/threads', { thread_id: 'x' }],
  ['GET', '/threads/x'],
  ['GET', `/threads/${NOBODY}`],
  ['PATCH', `/threads/${NOBODY}`, { metadata: {} }],
  ['DELETE', `/threads/${NOBODY}`],
  ['POST', `/threads/${NOBODY}/copy`],
  ['GET', `/threads/${NOBODY}/state`],
  ['POST', `/threads/${NOBODY}/state`, { values: {} }],
  ['POST', `/threads/${NOBODY}/history`, {}],
  ['POST', '/threads/search', { limit: 0 }],
  ['POST', `/threads/${NOBODY}/runs`, { assistant_id: 'steps', input: {} }],
  ['GET', `/threads/${NOBODY}/runs/${NOBODY}`],
  ['DELETE', `/threads/${NOBODY}/runs/${NOBODY}`],
  ['GET', `/threads/${NOBODY}/runs/${NOBODY}/join`],
  ['POST', `/threads/${NOBODY}/runs/${NOBODY}/cancel`],
  ['POST', '/runs/wait', { assistant_id: 'none', input: {} }],
  ['POST', '/runs/wait', { input: {} }],
  ['POST', '/runs/wait', { assistant_id: 'steps', stream_mode: 'none' }],
  ['POST', '/runs', { assistant_id: 'steps', input: {}, after_seconds: -1 }],
].map(([method, path, body]) => [
  `invalid: ${method} ${path} ${JSON.stringify(body) ?? ''}`,
  (call) => call(method, path, body),
]);

const life = [
  [
    'an assistant, its versions and back',
    async (call) => {
      const { assistant_id: id } = await call('POST', '/assistants', {
        graph_id: 'report',
        name: 'mine',
        metadata: { a: 1 },
        config: { configurable: { style: 'one' } },
      });
      await call('GET', `/assistants/${id}`);
      await call('POST', '/assistants', { graph_id: 'report', assistant_id: id });
      await call('POST', '/assistants', { graph_id: 'report', assistant_id: id, if_exists: 'do_nothing' });
      await call('PATCH', `/assistants/${id}`, {
        metadata: { b: 2 },
        config: { configurable: { style: 'two' } },
      });
      await call('PATCH', `/assistants/${id}`, { name: 'other' });
      await call('POST', `/assistants/${id}/versions`, {});
      await call('POST', `/assistants/${id}/latest`, { version: 1 });
      await call('POST', '/runs/wait', { assistant_id: id, input: {} });
      await call('POST', '/assistants/search', { metadata: { a: 1 } });
      await call('POST', '/assistants/count', { metadata: { a: 1 } });
      await call('DELETE', `/assistants/${id}`);
    },
  ],
  [
    'what a default assistant is',
    async (call) => {
      await call('POST', '/assistants/search', { graph_id: 'steps', metadata: { created_by: 'system' } });
    },
  ],
  [
    'the context of a version',
    async (call) => {
      const { assistant_id: id } = await call('POST', '/assistants', {
        graph_id: 'report',
        context: { one: 1 },
      });
      await call('PATCH', `/assistants/${id}`, { context: { two: 2 } });
      await call('POST', `/assistants/${id}/latest`, { version: 1 });
      await call('DELETE', `/assistants/${id}`);
    },
  ],
  ...['steps', 'nested', 'approval', 'chat', 'loop'].flatMap((graph) => [
    [`the drawing of ${graph}`, (call) => call('GET', `/assistants/${graph}/graph`)],
    [`the drawing of ${graph} with xray`, (call) => call('GET', `/assistants/${graph}/graph?xray=true`)],
  ]),
  ['the schemas of steps', (call) => call('GET', '/assistants/steps/schemas')],
  [
    'a thread, changed, found, copied, deleted',
    async (call) => {
      const id = await newThread(call, { metadata: { kind: 'test' } });
      await call('GET', `/threads/${id}`);
      await call('GET', `/threads/${id}/state`);
      await call('POST', `/threads/${id}/history`, {});
      await call('POST', '/threads', { thread_id: id });
      await call('POST', '/threads', { thread_id: id, if_exists: 'do_nothing' });
      await call('PATCH', `/threads/${id}`, { metadata: { more: 1 } });
      await call('POST', '/threads/search', { metadata: { kind: 'test' } });
      await call('POST', '/threads/search', { ids: [id], select: ['thread_id', 'metadata'] });
      await call('POST', '/threads/count', { metadata: { kind: 'test' } });
      await call('POST', `/threads/${id}/copy`, {});
      await call('DELETE', `/threads/${id}`);
      await call('GET', `/threads/${id}`);
    },
  ],
  [
    'the state and the history of a run',
    async (call) => {
      const id = await newThread(call);
      await call('POST', `/threads/${id}/runs/wait`, { assistant_id: 'steps', input: { count: 1 } });
      await call('GET', `/threads/${id}`);
      await call('GET', `/threads/${id}/state`);
      const history = await call('POST', `/threads/${id}/history`, { limit: 10 });
      const { checkpoint_id: at } = history[1].checkpoint;
      await call('GET', `/threads/${id}/state/${at}`);
      await call('POST', `/threads/${id}/state/checkpoint`, { checkpoint: history[1].checkpoint });
      await call('GET', `/threads/${id}/history?limit=2`);
      await call('POST', `/threads/${id}/history`, { limit: 1, before: at });
      await call('POST', `/threads/${id}/state`, { values: { trail: ['hand'] }, as_node: 'one' });
      await call('GET', `/threads/${id}/state`);
      await call('POST', `/threads/${id}/runs/wait`, { assistant_id: 'steps', input: null });
      await call('POST', `/threads/${id}/runs/wait`, {
        assistant_id: 'steps',
        input: null,
        checkpoint_id: at,
      });
    },
  ],
  [
    'a question and its decision',
    async (call) => {
      const id = await newThread(call);
      await call('POST', `/threads/${id}/runs/wait`, { assistant_id: 'approval', input: { request: 'r' } });
      await call('GET', `/threads/${id}`);
      await call('GET', `/threads/${id}/state`);
      await call('POST', `/threads/${id}/runs/stream`, {
        assistant_id: 'approval',
        command: { resume: 'yes' },
        stream_mode: ['updates', 'values'],
      });
      await call('GET', `/threads/${id}`);
      await call('POST', `/threads/${id}/runs/wait`, {
        assistant_id: 'approval',
        command: { update: { decision: 'no' }, goto: 'act' },
      });
    },
  ],
  [
    'a question in a stream',
    async (call) => {
      const id = await newThread(call);
      await call('POST', `/threads/${id}/runs/stream`, {
        assistant_id: 'approval',
        input: { request: 'r' },
        stream_mode: ['updates', 'values'],
      });
    },
  ],
  [
    'interrupts before and after',
    async (call) => {
      const id = await newThread(call);
      const run = (more) => call('POST', `/threads/${id}/runs/wait`, { assistant_id: 'steps', ...more });
      await run({ input: {}, interrupt_before: ['two'] });
      await call('GET', `/threads/${id}`);
      await run({ input: null, interrupt_after: ['two'] });
      await run({ input: null });
    },
  ],
  [
    'a subgraph, its stream and state',
    async (call) => {
      const id = await newThread(call);
      await call('POST', `/threads/${id}/runs/stream`, {
        assistant_id: 'nested',
        input: { count: 200 },
        stream_mode: ['updates'],
        stream_subgraphs: true,
      });
      await call('GET', `/threads/${id}/state?subgraphs=true`);
      await call('POST', `/threads/${id}/runs/wait`, { assistant_id: 'nested', command: { resume: 'x' } });
    },
  ],
  [
    'a graph that throws',
    async (call) => {
      const id = await newThread(call);
      await call('POST', `/threads/${id}/runs/stream`, {
        assistant_id: 'failing',
        input: {},
        stream_mode: ['values'],
      });
      await call('GET', `/threads/${id}`);
      await call('GET', `/threads/${id}/state`);
      await call('POST', `/threads/${id}/runs/wait`, { assistant_id: 'failing', input: {} });
    },
  ],
  [
    'runs of a thread',
    async (call) => {
      const id = await newThread(call);
      const { run_id: run } = await call('POST', `/threads/${id}/runs`, {
        assistant_id: 'steps',
        input: {},
        metadata: { m: 1 },
      });
      await call('GET', `/threads/${id}/runs/${run}/join`);
      await call('GET', `/threads/${id}/runs/${run}`);
      await call('GET', `/threads/${id}/runs`);
      await call('DELETE', `/threads/${id}/runs/${run}`);
      await call('GET', `/threads/${id}/runs/${run}`);
    },
  ],
  [
    'a busy thread',
    async (call) => {
      const id = await newThread(call);
      const { run_id: run } = await call('POST', `/threads/${id}/runs`, {
        assistant_id: 'loop',
        input: { rounds: 500, pause: 20 },
      });
      await call('POST', `/threads/${id}/runs`, {
        assistant_id: 'loop',
        input: {},
        multitask_strategy: 'reject',
      });
      await call('POST', `/threads/${id}/state`, { values: { done: 1 } });
      await call('POST', `/threads/${id}/runs/${run}/cancel?wait=1`);
      await call('GET', `/threads/${id}/runs/${run}`);
      await call('GET', `/threads/${id}`);
    },
  ],
  [
    'cancelled by rollback',
    async (call) => {
      const id = await newThread(call);
      const { run_id: run } = await call('POST', `/threads/${id}/runs`, {
        assistant_id: 'loop',
        input: { rounds: 500, pause: 20 },
      });
      await call('POST', `/threads/${id}/runs/${run}/cancel?wait=1&action=rollback`);
      await call('GET', `/threads/${id}/runs/${run}`);
    },
  ],
  [
    'a resumable stream, joined',
    async (call) => {
      const id = await newThread(call);
      // The public server keeps no events of a run that somebody has joined before its first one.
      const [first] = await call('POST', `/threads/${id}/runs/stream`, {
        assistant_id: 'steps',
        input: {},
        stream_mode: ['updates'],
        stream_resumable: true,
      });
      const run = first?.data.run_id;
      await call('GET', `/threads/${id}/runs/${run}/stream`, undefined, { 'last-event-id': '-1' });
      await call('GET', `/threads/${id}/runs/${run}/stream`, undefined, { 'last-event-id': '1' });
    },
  ],
  [
    'stateless runs',
    async (call) => {
      await call('POST', '/runs/wait', { assistant_id: 'steps', input: {} });
      await call('POST', '/runs/stream', { assistant_id: 'steps', input: {}, stream_mode: ['updates'] });
      await call('POST', '/runs/wait', { assistant_id: 'failing', input: {} });
      await call('POST', '/runs/wait', {
        assistant_id: 'report',
        input: {},
        context: { tone: 'dry' },
        config: { configurable: { style: 's' } },
      });
    },
  ],
  [
    'messages of a model',
    async (call) => {
      const input = { messages: [{ type: 'human', content: 'hi', id: 'one' }] };
      for (const mode of ['messages', 'messages-tuple', 'values', 'updates'])
        await call('POST', '/runs/stream', { assistant_id: 'chat', input, stream_mode: [mode] });
    },
  ],
];

export const cases = [...life, ...streams, ...invalid];
