// What a graph streams, as events of a run: their names, and the public shape of checkpoints and tasks. The configurable that
// belongs to the authentication is left out of both.
import type { WorkerEvent } from '../protocol/messages.ts';
import { nameCheckpoint, nameTaskCheckpoint } from './checkpoint-name.ts';
import type { GraphConfig } from './library.ts';
import { writeJson } from './json-text.ts';

export type Chunk = {
  readonly namespace: readonly string[];
  readonly mode: string;
  readonly payload: unknown;
};

export type ChunkSettings = {
  /** The modes that the client asked for: the graph may stream more. */
  readonly modes: ReadonlySet<string>;
  readonly hasSubgraphs: boolean;
  /** Names of `configurable` that leave this process in no event. */
  readonly hidden: ReadonlySet<string>;
};

type Task = Readonly<Record<string, unknown>> & { readonly state?: GraphConfig };
type CheckpointPayload = Readonly<Record<string, unknown>> & {
  readonly config?: GraphConfig;
  readonly parentConfig?: GraphConfig;
  readonly tasks: readonly Task[];
};

/** Chunks of a graph with several modes: `[mode, payload]`, with subgraphs `[namespace, mode, payload]`. */
export function readChunk(chunk: unknown, hasSubgraphs: boolean): Chunk {
  const parts = chunk as readonly unknown[];
  const [mode, payload] = hasSubgraphs ? parts.slice(1) : parts;
  const namespace = hasSubgraphs ? ((parts[0] as readonly string[] | null) ?? []) : [];
  return { namespace, mode: String(mode), payload };
}

/** Clients act on it before the stream ends: they read the state of the thread, which must be stored. */
export function isInterrupt({ mode, payload }: Chunk): boolean {
  const isState = mode === 'updates' || mode === 'values';
  return isState && typeof payload === 'object' && payload !== null && '__interrupt__' in payload;
}

/** Undefined for what the client did not ask for. */
export function eventOf(
  { namespace, mode, payload }: Chunk,
  settings: ChunkSettings,
): WorkerEvent | undefined {
  const { modes, hasSubgraphs, hidden } = settings;
  const event = hasSubgraphs && namespace.length > 0 ? `${mode}|${namespace.join('|')}` : mode;
  if (mode === 'checkpoints' && isEnvelope(payload)) {
    // It accompanies `values`; who asked for checkpoints gets the whole ones.
    return modes.has('checkpoints') ? undefined : { event, data: writeJson(payload, event) };
  }
  const isWanted = mode === 'messages' ? modes.has('messages-tuple') : modes.has(mode);
  if (!isWanted) return undefined;
  return { event, data: writeJson(shape(mode, payload, hidden), `The event \`${event}\``) };
}

function shape(mode: string, payload: unknown, hidden: ReadonlySet<string>): unknown {
  switch (mode) {
    case 'messages': {
      const [message, metadata] = payload as readonly [unknown, Record<string, unknown>];
      return [message, omit(metadata, hidden)];
    }
    case 'debug':
      return shapeDebug(payload as { readonly type: string; readonly payload: unknown }, hidden);
    case 'checkpoints': {
      const { values, metadata, next } = payload as Record<string, unknown>;
      return { values, metadata, next };
    }
    case 'tasks':
      return shapeTask(payload as Task);
    default:
      return payload;
  }
}

function shapeDebug(
  chunk: { readonly type: string; readonly payload: unknown },
  hidden: ReadonlySet<string>,
): unknown {
  if (chunk.type === 'task_result') return { ...chunk, payload: shapeTask(chunk.payload as Task) };
  if (chunk.type !== 'checkpoint') return chunk;
  const { parentConfig, ...payload } = chunk.payload as CheckpointPayload;
  const shaped = {
    ...payload,
    checkpoint: nameCheckpoint(payload.config),
    parent_checkpoint: nameCheckpoint(parentConfig),
    tasks: payload.tasks.map(shapeTask),
    config: shapeConfig(payload.config, hidden),
    parent_config: shapeConfig(parentConfig, hidden),
  };
  return { ...chunk, payload: shaped };
}

/** A task of a subgraph has its checkpoint in place of a config. */
function shapeTask(task: Task): unknown {
  const checkpoint = nameTaskCheckpoint(task.state);
  if (checkpoint === null) return task;
  const { state: _, ...rest } = task;
  return { ...rest, checkpoint };
}

function shapeConfig(config: GraphConfig | undefined, hidden: ReadonlySet<string>): unknown {
  if (config?.configurable === undefined) return config;
  const { callbacks: _, ...rest } = config as GraphConfig & { readonly callbacks?: unknown };
  const entries = Object.entries(config.configurable);
  const configurable = Object.fromEntries(
    entries.filter(([name]) => !name.startsWith('__') && !hidden.has(name)),
  );
  return {
    ...rest,
    configurable,
    ...(rest.metadata === undefined ? {} : { metadata: omit(rest.metadata, hidden) }),
  };
}

export function omit<T>(value: Readonly<Record<string, T>>, hidden: ReadonlySet<string>): Record<string, T> {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !hidden.has(name)));
}

/** Number, source and id of a checkpoint, without its values. */
function isEnvelope(payload: unknown): boolean {
  if (typeof payload !== 'object' || payload === null) return false;
  const { id, step } = payload as { readonly id?: unknown; readonly step?: unknown };
  const isShort = !('values' in payload) && !('config' in payload);
  return isShort && typeof id === 'string' && ('source' in payload || typeof step === 'number');
}
