// Runs of graphs as a worker runs them, without a worker: events and end, over checkpoints in memory.
import { fileURLToPath } from 'node:url';
import type { CallContext, Methods } from '../../src/agent-worker/method.ts';
import { loadGraphs } from '../../src/agent-worker/graphs/load-graphs.ts';
import type { RunEnd, RunToStart } from '../../src/agent-worker/protocol/calls.ts';
import { createMemoryCheckpoints, type MemoryCheckpoints } from './agent-checkpoints.ts';

const file = fileURLToPath(new URL('./agent-graphs.ts', import.meta.url));

export const root: string = fileURLToPath(new URL('../..', import.meta.url));

/** Graphs of agent-graphs.ts by the names of their exports. */
export async function loadTestGraphs(...names: readonly string[]): Promise<Methods> {
  const graphs = Object.fromEntries(
    names.map((name) => [name, { file, name, source: `./test/support/agent-graphs.ts:${name}` }]),
  );
  return (await loadGraphs({ root, graphs })).methods;
}

export type TestEvent = { readonly event: string; readonly data: unknown };
export type TestRun = { readonly events: TestEvent[]; readonly end: RunEnd; readonly text: string };

export type RunFields = Partial<Omit<RunToStart, 'input' | 'config' | 'context' | 'command'>> & {
  readonly graph_id: string;
  readonly input?: unknown;
  readonly command?: unknown;
  readonly context?: unknown;
  readonly config?: object;
};

export type TestCall = {
  readonly memory: MemoryCheckpoints;
  readonly context: CallContext;
  readonly events: TestEvent[];
};

export function createCall(
  memory: MemoryCheckpoints = createMemoryCheckpoints(),
  signal?: AbortSignal,
): TestCall {
  const events: TestEvent[] = [];
  const context: CallContext = {
    signal: signal ?? new AbortController().signal,
    callServer: memory.callServer,
    log() {},
    async emit(sent) {
      for (const { event, data } of sent) events.push({ event, data: JSON.parse(data) });
    },
  };
  return { memory, context, events };
}

export function createRun({ input, command, config, context, ...fields }: RunFields): RunToStart {
  return {
    run_id: '11111111-1111-4111-8111-111111111111',
    thread_id: '22222222-2222-4222-8222-222222222222',
    attempt: 1,
    hidden: [],
    metadata: {},
    stream_mode: ['values'],
    stream_subgraphs: false,
    durability: 'async',
    is_resumed: false,
    config: JSON.stringify(config ?? {}),
    ...(input === undefined ? {} : { input: JSON.stringify(input) }),
    ...(command === undefined ? {} : { command: JSON.stringify(command) }),
    ...(context === undefined ? {} : { context: JSON.stringify(context) }),
    ...fields,
  };
}

export async function startRun(
  methods: Methods,
  fields: RunFields,
  call: TestCall = createCall(),
): Promise<TestRun> {
  const start = methods['run.start'];
  if (start === undefined) throw new Error('there is no run.start');
  const end = await start(createRun(fields), call.context);
  return { events: call.events, end, text: JSON.stringify([call.events, call.memory.calls, end]) };
}
