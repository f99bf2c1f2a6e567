// The methods about the state of a thread: read it, at any of its checkpoints, and write to it as a node would.
import { waitForClock } from '../checkpoints/checkpoint-clock.ts';
import type { CreateSaver, Saver } from '../checkpoints/saver.ts';
import { type Method, Refusal } from '../method.ts';
import type { StateRequest } from '../protocol/calls.ts';
import type { GraphPurpose, GraphSource } from './graph-export.ts';
import { withCopy } from './graph-copies.ts';
import { writeJson } from './json-text.ts';
import type { CompiledGraph, GraphConfig, StateSnapshot } from './library.ts';
import { describeCheckpoint } from './run-options.ts';
import { createThreadState } from './thread-state.ts';

export type StateParts = {
  readonly createSaver: CreateSaver;
  /** A Refusal where the deployment has no such graph. */
  findGraph(graphId: string): GraphSource;
};

export type StateMethods = {
  readonly 'state.get': Method<'state.get'>;
  readonly 'state.history': Method<'state.history'>;
  readonly 'state.update': Method<'state.update'>;
};

const NAMES_OF_PLACE = ['checkpoint_ns', 'checkpoint_id', 'checkpoint_map'];

export function createStateMethods(parts: StateParts): StateMethods {
  return {
    'state.get': (request, context) =>
      withGraph(parts, request, 'threads.read', context.callServer, async (graph, config) => {
        const snapshot = await graph.getState(config, { subgraphs: request.subgraphs ?? false });
        if (config.configurable?.['checkpoint_id'] !== undefined && snapshot.createdAt === undefined) {
          throw new Refusal('not_found', 'The thread has no such checkpoint.');
        }
        return writeState(snapshot);
      }),
    'state.history': (request, context) =>
      withGraph(parts, request, 'threads.read', context.callServer, async (graph, config) => {
        const { limit, before, filter } = request;
        const options = {
          limit,
          ...(before === undefined ? {} : { before: configOf(before) }),
          ...(filter === undefined ? {} : { filter }),
        };
        const states: string[] = [];
        for await (const snapshot of graph.getStateHistory(config, options)) {
          states.push(writeState(snapshot));
          context.signal.throwIfAborted();
        }
        return `[${states.join(',')}]`;
      }),
    'state.update': (request, context) =>
      withGraph(parts, request, 'threads.update', context.callServer, async (graph, config, saver) => {
        const { graph_id, thread_id, values, as_node } = request;
        const configurable = { checkpoint_ns: '', ...config.configurable, graph_id };
        const next = await refuseInvalid(() =>
          graph.updateState({ configurable }, JSON.parse(values), as_node),
        );
        await saver.end();
        const state = await graph.getState({ configurable: { thread_id } });
        return { configurable: next.configurable ?? {}, state: writeState(state) };
      }),
  };
}

async function withGraph<T>(
  { createSaver, findGraph }: StateParts,
  request: StateRequest,
  purpose: GraphPurpose,
  callServer: Parameters<CreateSaver>[0]['callServer'],
  use: (graph: CompiledGraph, config: GraphConfig, saver: Saver) => Promise<T>,
): Promise<T> {
  const config: GraphConfig = JSON.parse(request.config);
  const compiled = await findGraph(request.graph_id)({ config, purpose });
  const saver = createSaver({
    ...{ callServer, describe: (found: GraphConfig) => describeCheckpoint(found, NOTHING) },
    ...(purpose === 'threads.update' ? { follow: waitForClock } : {}),
  });
  const place = Object.entries(config.configurable ?? {}).filter(
    ([name, value]) => NAMES_OF_PLACE.includes(name) && value !== null && value !== undefined,
  );
  const configurable = { thread_id: request.thread_id, ...Object.fromEntries(place) };
  return await withCopy(compiled, saver, (graph) => use(graph, { configurable }, saver));
}

const NOTHING: ReadonlySet<string> = new Set();

function configOf(before: Readonly<Record<string, unknown>>): GraphConfig {
  return 'configurable' in before ? (before as GraphConfig) : { configurable: { ...before } };
}

/** The library says so when the values or the node fit no graph: that is the caller's doing. */
async function refuseInvalid<T>(update: () => Promise<T>): Promise<T> {
  try {
    return await update();
  } catch (error) {
    if (error instanceof Error && error.name === 'InvalidUpdateError')
      throw new Refusal('invalid', error.message);
    throw error;
  }
}

function writeState(snapshot: StateSnapshot): string {
  return writeJson(createThreadState(snapshot), 'The state of the thread');
}
