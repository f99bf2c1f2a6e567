// A worker with methods for tests in place of graphs: what it is to do comes as the input of a run.
import { spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { loadApp } from '../../../src/agent-worker/app/app-method.ts';
import { type CallContext, LoadError, type Methods } from '../../../src/agent-worker/method.ts';
import type { RunEnd, RunToStart } from '../../../src/agent-worker/protocol/calls.ts';
import { serveWorker } from '../../../src/agent-worker/serve-worker.ts';
import { startWatchdog } from '../../../src/agent-worker/watchdog.ts';

type Action = (params: RunToStart, context: CallContext) => Promise<unknown>;

const socket = new Socket({ fd: 3, readable: true, writable: true });

const actions: Readonly<Record<string, Action>> = {
  environment: async () => process.env,
  facts: async () => ({
    argv: process.argv,
    execArgv: process.execArgv,
    cwd: process.cwd(),
    pid: process.pid,
  }),
  exit: async () => process.exit(3),
  async loop(_, { emit }) {
    await emit([{ event: 'custom', data: '"loops"' }]);
    await new Promise(setImmediate);
    for (;;);
  },
  async loopAtOnce() {
    for (;;);
  },
  async allocate() {
    const kept: number[][] = [];
    for (;;) kept.push(Array.from({ length: 100_000 }, (_, i) => i + kept.length));
  },
  wait: (_, { signal }) =>
    new Promise((__, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  ignore: () => new Promise(() => undefined),
  /** As many events as there are until it is cancelled; it says how many in the log. */
  async emit(_, { emit, signal, log }) {
    const data = JSON.stringify('x'.repeat(10_000));
    let count = 0;
    try {
      for (; !signal.aborted; count += 1) await emit([{ event: 'custom', data }]);
    } finally {
      log('info', `emitted ${count}`);
    }
  },
  async count({ metadata }, { emit }) {
    for (let i = 0; i < Number(metadata['to']); i += 1) await emit([{ event: 'custom', data: String(i) }]);
  },
  async put(_, { callServer, emit }) {
    await emit([{ event: 'custom', data: '1' }]);
    return callServer('checkpoint.get', { thread_id: 't', checkpoint_ns: '' });
  },
  /** Many large calls at once. */
  async puts(_, { callServer }) {
    const place = { thread_id: 't', checkpoint_ns: 'x'.repeat(60_000) };
    await Promise.all(Array.from({ length: 20 }, () => callServer('checkpoint.get', place)));
  },
  async flood() {
    for (let i = 0; i < 20_000; i += 1) console.log(`line ${i} ${'x'.repeat(500)}`);
  },
  async child() {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' });
    return child.pid;
  },
  async garbage() {
    socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff]));
    await new Promise(() => undefined);
  },
  async unknownMessage() {
    const text = Buffer.from('{"type":"ready","loaded":{"library":"","hasAuth":false,"hasApp":false}}');
    socket.write(Buffer.concat([Buffer.from([0, 0, 0, text.length]), text]));
    await new Promise(() => undefined);
  },
  async throws() {
    throw new RangeError('Boo!');
  },
};

async function runAction(params: RunToStart, context: CallContext): Promise<RunEnd> {
  const action = actions[JSON.parse(params.input ?? 'null')];
  const value = await action?.(params, context);
  return { status: 'success', values: JSON.stringify(value ?? null), interrupts: '{}' };
}

const methods: Methods = {
  'run.start': runAction,
  'auth.authenticate': async () => ({
    ...{ identity: String(process.pid), display_name: '', is_authenticated: true, permissions: [] },
  }),
  'graph.schemas': async ({ graph_id }) => {
    if (graph_id === 'loop') for (;;);
    if (graph_id === 'exit') process.exit(1);
    if (graph_id === 'hang') await new Promise(() => undefined);
    return JSON.stringify({ pid: process.pid, graph_id });
  },
};

startWatchdog(Number(process.argv[2]));
await serveWorker(socket, async ({ graphs, app }) => {
  if ('broken' in graphs) throw new LoadError('graphs.broken', 'cannot be loaded');
  if ('ends' in graphs) process.exit(4);
  return {
    methods,
    app: app === undefined ? undefined : await loadApp(app),
    loaded: { library: '0', hasAuth: false, hasApp: false },
  };
});
process.exit();
