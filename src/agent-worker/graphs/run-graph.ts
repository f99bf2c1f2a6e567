// One run of a graph, from the message of the server to its end.
import { waitForClock } from '../checkpoints/checkpoint-clock.ts';
import { withLatest } from '../checkpoints/latest-checkpoint.ts';
import type { CreateSaver, Saver } from '../checkpoints/saver.ts';
import type { CallContext } from '../method.ts';
import type { RunEnd, RunToStart } from '../protocol/calls.ts';
import { createEmission } from './emission.ts';
import type { GraphSource } from './graph-export.ts';
import { withCopy } from './graph-copies.ts';
import { writeJson } from './json-text.ts';
import type { CompiledGraph, Library, StateSnapshot } from './library.ts';
import { createRunInput } from './run-input.ts';
import {
  configurableAt,
  createRunOptions,
  describeCheckpoint,
  parseRunConfig,
  type RunConfig,
} from './run-options.ts';
import { createRunProgress, type RunProgress } from './run-progress.ts';
import { findStartPoint, type StartPoint } from './run-start-point.ts';
import { streamRun } from './run-stream.ts';
import { createFeedbackEvent, createTracer, hasTracingAccount } from './tracing.ts';

export type RunParts = {
  readonly library: Library;
  readonly createSaver: CreateSaver;
  readonly source: GraphSource;
};

type Run = {
  readonly params: RunToStart;
  readonly config: RunConfig;
  readonly hidden: ReadonlySet<string>;
  readonly graph: CompiledGraph;
  readonly saver: Saver;
  readonly context: CallContext;
  /** Aborts too when something cannot be stored. */
  readonly signal: AbortSignal;
  readonly library: Library;
};

/** How much of a run may be executed again after its worker was lost, more than the graph itself has not stored. */
const PUT_DELAY_MS = 30;

export async function runGraph(
  { latest, ...params }: RunToStart,
  context: CallContext,
  parts: RunParts,
): Promise<RunEnd> {
  const { library, createSaver, source } = parts;
  const config = parseRunConfig(params);
  const hidden = new Set(params.hidden);
  const runContext: unknown = params.context === undefined ? undefined : JSON.parse(params.context);
  const compiled = await source({ config, purpose: 'threads.create_run', context: runContext });
  const broken = new AbortController();
  const saver = createSaver({
    callServer: withLatest(context.callServer, latest),
    runId: params.run_id,
    describe: (found) => describeCheckpoint(found, hidden),
    follow: (id) => waitForClock(id, (message) => context.log('warn', `run ${params.run_id} ${message}`)),
    onFailure: (error) => broken.abort(error),
    delayMs: params.durability === 'async' ? PUT_DELAY_MS : 0,
  });
  const signal = AbortSignal.any([context.signal, broken.signal]);
  try {
    return await withCopy(compiled, saver, (graph) =>
      execute({ params, config, hidden, graph, saver, context, signal, library }),
    );
  } finally {
    await saver.end();
    // A run of which something could not be stored has not been.
    broken.signal.throwIfAborted();
  }
}

async function execute(run: Run): Promise<RunEnd> {
  const { params, graph, saver, signal } = run;
  signal.throwIfAborted();
  const progress = createRunProgress();
  const start = await findStartPoint(params, graph, saver);
  if (start.kind === 'interrupt') await emitInterrupt(run, start.state, progress);
  else await stream(run, progress, start);
  // The library tells of a checkpoint when it starts the step that follows.
  if (mayStopAfterNode(run))
    progress.set(await graph.getState({ configurable: { thread_id: params.thread_id } }));
  await emitFeedback(run);
  return progress.end();
}

async function emitFeedback({ params, context, library }: Run): Promise<void> {
  const { run_id: runId, feedback_keys: keys = [] } = params;
  if (keys.length === 0) return;
  if (hasTracingAccount()) return await context.emit([await createFeedbackEvent(library, runId, keys)]);
  context.log(
    'warn',
    `run ${runId}: feedback_keys have no effect, because no variable of the deployment names a tracing account: set LANGSMITH_ENDPOINT and LANGSMITH_API_KEY`,
  );
}

function mayStopAfterNode({ params, graph }: Run): boolean {
  return (params.interrupt_after ?? graph.interruptAfter ?? []).length > 0;
}

async function stream(run: Run, progress: RunProgress, start: StartPoint): Promise<void> {
  const { params, config, hidden, graph, saver, context, signal, library } = run;
  const emission = createEmission();
  const configurable = configurableAt(config, start.kind === 'beginning' ? params.checkpoint : undefined);
  const tracer = await createTracer(library, configurable, hidden);
  const options = {
    ...createRunOptions(params, config, library.version),
    configurable,
    signal,
    callbacks: [emission.handler, ...(tracer === undefined ? [] : [tracer])],
  };
  const release = (): void => emission.end();
  signal.addEventListener('abort', release);
  try {
    const events = streamRun({
      graph,
      runId: params.run_id,
      input: createRunInput(params, start, library),
      options,
      settings: { modes: new Set(params.stream_mode), hasSubgraphs: params.stream_subgraphs, hidden },
      progress,
      emission,
      stored: () => saver.stored(),
    });
    for await (const event of events) await emission.send(context.emit([event]));
  } finally {
    signal.removeEventListener('abort', release);
    emission.end();
  }
}

/** What the graph streams when it stops at a node, for a run that had come so far before its worker was lost. */
async function emitInterrupt(
  { params, context }: Run,
  state: StateSnapshot,
  progress: RunProgress,
): Promise<void> {
  progress.set(state);
  const interrupted = writeJson({ __interrupt__: [] }, 'The interrupt');
  const modes = new Set(params.stream_mode);
  if (modes.has('values')) {
    await context.emit([{ event: 'values', data: writeJson(state.values, 'The event `values`') }]);
  }
  for (const event of ['updates', 'values'].filter((mode) => modes.has(mode))) {
    await context.emit([{ event, data: interrupted }]);
  }
}
