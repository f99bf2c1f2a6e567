// The events of a graph that runs, in the order in which it makes them.
import type { WorkerEvent } from '../protocol/messages.ts';
import { type ChunkSettings, eventOf, isInterrupt, omit, readChunk } from './chunk-event.ts';
import type { Emission } from './emission.ts';
import type { CompiledGraph, GraphEvent } from './library.ts';
import { writeJson } from './json-text.ts';
import { createMessageEvents } from './message-events.ts';
import type { RunProgress } from './run-progress.ts';

export type GraphRun = {
  readonly graph: CompiledGraph;
  readonly runId: string;
  readonly input: unknown;
  readonly options: object;
  readonly settings: ChunkSettings;
  readonly progress: RunProgress;
  readonly emission: Emission;
  /** Resolves when the server has every checkpoint of the graph. */
  stored(): Promise<void>;
};

export async function* streamRun(run: GraphRun): AsyncGenerator<WorkerEvent> {
  const { modes } = run.settings;
  // Only these two need what happens inside of nodes, and that is dear.
  if (modes.has('events') || modes.has('messages')) yield* streamWithEvents(run);
  else yield* streamChunks(run);
}

async function* streamChunks({
  graph,
  input,
  options,
  settings,
  progress,
  emission,
  stored,
}: GraphRun): AsyncGenerator<WorkerEvent> {
  for await (const item of emission.read(await graph.stream(input, options))) {
    const chunk = readChunk(item, settings.hasSubgraphs);
    progress.add(chunk);
    const event = eventOf(chunk, settings);
    if (isInterrupt(chunk)) await stored();
    if (event !== undefined) yield event;
  }
}

async function* streamWithEvents(run: GraphRun): AsyncGenerator<WorkerEvent> {
  const { graph, runId, input, options, settings, progress, emission } = run;
  const { modes, hasSubgraphs, hidden } = settings;
  const messages = createMessageEvents(hidden);
  for await (const event of emission.read(graph.streamEvents(input, options))) {
    if (event.tags?.includes('langsmith:hidden')) continue;
    if (event.event === 'on_chain_stream' && event.run_id === runId) {
      const chunk = readChunk(event.data.chunk, hasSubgraphs);
      progress.add(chunk);
      const found = eventOf(chunk, settings);
      if (isInterrupt(chunk)) await run.stored();
      if (found !== undefined) yield found;
      // The public server finds no messages of the state while it streams subgraphs.
      if (modes.has('messages') && !hasSubgraphs) yield* messages.addPayload(chunk.payload);
      continue;
    }
    if (modes.has('events')) yield { event: 'events', data: writeEvent(event, hidden) };
    if (modes.has('messages') && isPiece(event)) yield* messages.addPiece(event);
  }
}

function isPiece({ event, tags }: GraphEvent): boolean {
  return event === 'on_chat_model_stream' && !tags?.includes('nostream');
}

function writeEvent(event: GraphEvent, hidden: ReadonlySet<string>): string {
  const { metadata } = event;
  const shown = metadata === undefined ? event : { ...event, metadata: omit(metadata, hidden) };
  return writeJson(shown, `The event \`events\` of ${event.event}`);
}
