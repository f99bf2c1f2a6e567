// What a run is executed with, as its row keeps it and clients see it: what was sent, with the config and the context of the
// assistant as they were when the run was created. Whose run it is, is not in it.
import type { Durability } from '../../../agent-worker/protocol/calls.ts';
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import { withoutReserved } from '../access/configurable-names.ts';
import type { RunBody } from './run-body.ts';

export type RunKwargs = {
  readonly input?: unknown;
  readonly command?: JsonObject | null | undefined;
  /** `configurable` has the ids of the run, and the checkpoint that it begins at. */
  readonly config: JsonObject & { readonly configurable: JsonObject; readonly metadata: JsonObject };
  readonly context: unknown;
  readonly stream_mode: readonly string[];
  readonly interrupt_before?: readonly string[] | '*' | undefined;
  readonly interrupt_after?: readonly string[] | '*' | undefined;
  readonly feedback_keys?: readonly string[] | undefined;
  /** Its thread ends with it. */
  readonly temporary: boolean;
  readonly subgraphs: boolean;
  readonly resumable: boolean;
  readonly durability?: Durability | undefined;
};

/** The parts that a run is made of: a later one has precedence over an earlier one. */
export type KwargsParts = {
  readonly runId: string;
  readonly threadId: string;
  readonly graphId: string;
  readonly assistantId: string;
  /** `LANGGRAPH_CONFIG` of the graph. */
  readonly defaults: JsonObject;
  readonly assistant: {
    readonly config: JsonObject;
    readonly context: JsonObject;
    readonly metadata: JsonObject;
  };
  readonly thread: { readonly config: JsonObject; readonly metadata: JsonObject };
  /** Of the run, as the authorization handler left it. */
  readonly metadata: JsonObject;
  readonly isTemporary: boolean;
};

export function createKwargs(body: RunBody, parts: KwargsParts): RunKwargs {
  const { defaults, assistant, thread, runId, threadId, graphId, assistantId } = parts;
  const { context: defaultContext, ...defaultConfig } = defaults;
  const ids = { graph_id: graphId, assistant_id: assistantId };
  // The thread has those of the run before.
  const metadata = { ...assistant.metadata, ...thread.metadata, ...ids, ...parts.metadata };
  const configurable = {
    ...withoutReserved({
      ...toObject(defaultConfig['configurable']),
      ...withoutPlace(toObject(assistant.config['configurable'])),
      ...withoutPlace(toObject(thread.config['configurable'])),
      ...toObject(body.config?.['configurable']),
      ...checkpointOf(body),
    }),
    ...tracerOf(body),
    ...{ run_id: runId, thread_id: threadId, ...ids },
  };
  return {
    input: body.input,
    command: body.command,
    config: { ...defaultConfig, ...assistant.config, ...body.config, configurable, metadata },
    context: isPlain(body.context ?? {})
      ? { ...toObject(defaultContext), ...assistant.context, ...toObject(body.context) }
      : body.context,
    stream_mode: toModes(body.stream_mode),
    interrupt_before: body.interrupt_before ?? undefined,
    interrupt_after: body.interrupt_after ?? undefined,
    feedback_keys: toList(body.feedback_keys),
    temporary: parts.isTemporary,
    subgraphs: body.stream_subgraphs ?? false,
    resumable: body.stream_resumable ?? false,
    durability: durabilityOf(body),
  };
}

/** The config that the thread shows: that of the run which it was last given to while it had nothing to do. */
export function threadConfigOf(
  body: RunBody,
  { assistant, thread }: Pick<KwargsParts, 'assistant' | 'thread'>,
): JsonObject {
  const configurable = withoutPlace(
    withoutReserved({
      ...toObject(assistant.config['configurable']),
      ...toObject(thread.config['configurable']),
      ...toObject(body.config?.['configurable']),
    }),
  );
  return { ...assistant.config, ...thread.config, ...body.config, configurable };
}

/** A checkpoint is where one run begins: those that follow it on its thread begin at the last one. */
function withoutPlace(configurable: JsonObject): JsonObject {
  const { checkpoint_id: _, checkpoint_ns: __, checkpoint_map: ___, ...rest } = configurable;
  return rest;
}

function durabilityOf({ durability, checkpoint_during: during }: RunBody): Durability | undefined {
  return durability ?? (typeof during === 'boolean' ? (during ? 'async' : 'exit') : undefined);
}

function checkpointOf({ checkpoint, checkpoint_id: id }: RunBody): JsonObject {
  // The thread of a run is that of its path, whatever the checkpoint says.
  const { thread_id: _, ...place } = checkpoint ?? {};
  const known = Object.entries(place).filter(([, value]) => value !== null && value !== undefined);
  return { ...(typeof id === 'string' ? { checkpoint_id: id } : {}), ...Object.fromEntries(known) };
}

function tracerOf({ langsmith_tracer: tracer }: RunBody): JsonObject {
  if (tracer === undefined || tracer === null) return {};
  return { langsmith_project: tracer.project_name, langsmith_example_id: tracer.example_id };
}

function toModes(mode: RunBody['stream_mode']): readonly string[] {
  const modes = toList(mode) ?? [];
  return modes.length === 0 ? ['values'] : modes;
}

function toList(given: string | readonly string[] | null | undefined): readonly string[] | undefined {
  if (given === null || given === undefined) return undefined;
  return typeof given === 'string' ? [given] : given;
}

function toObject(value: unknown): JsonObject {
  return isPlain(value) ? value : {};
}

function isPlain(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
