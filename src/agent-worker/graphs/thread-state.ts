// The state of a thread as clients see it, from what the library found.
import { type CheckpointName, nameCheckpoint } from './checkpoint-name.ts';
import type { GraphConfig, StateSnapshot, StateTask } from './library.ts';

export type ThreadState = {
  readonly values: unknown;
  readonly next: readonly string[];
  readonly tasks: readonly ThreadTask[];
  readonly metadata: unknown;
  readonly created_at: string | null;
  readonly checkpoint: CheckpointName | null;
  readonly parent_checkpoint: CheckpointName | null;
  readonly interrupts: readonly unknown[];
};

export type ThreadTask = {
  readonly id: string;
  readonly name: string;
  readonly error: string | null;
  readonly interrupts: readonly unknown[];
  readonly path: readonly unknown[] | undefined;
  /** Of the subgraph of the task: its config, or its whole state where that was asked for. */
  readonly checkpoint: unknown;
  readonly state: ThreadState | null;
  readonly result: unknown;
};

export function createThreadState(snapshot: StateSnapshot): ThreadState {
  return {
    values: snapshot.values,
    next: snapshot.next,
    tasks: snapshot.tasks.map(createTask),
    metadata: createMetadata(snapshot.metadata),
    created_at: snapshot.createdAt ?? null,
    checkpoint: nameCheckpoint(snapshot.config),
    parent_checkpoint: nameCheckpoint(snapshot.parentConfig),
    interrupts: snapshot.tasks.flatMap(({ interrupts }) => interrupts),
  };
}

function createTask({ id, name, error, interrupts, path, state, result }: StateTask): ThreadTask {
  return {
    id,
    name,
    error: error === undefined || error === null ? null : formatError(error),
    interrupts,
    path,
    checkpoint: state !== undefined && isConfig(state) ? (state.configurable ?? null) : null,
    state: state !== undefined && !isConfig(state) ? createThreadState(state) : null,
    result: result ?? null,
  };
}

function isConfig(state: StateSnapshot | GraphConfig): state is GraphConfig {
  return !('values' in state);
}

/** The namespace says nothing where it is that of the thread itself. */
function createMetadata(metadata: StateSnapshot['metadata']): unknown {
  if (metadata?.['checkpoint_ns'] !== '') return metadata;
  const { checkpoint_ns: _, ...rest } = metadata;
  return rest;
}

/** What is stored of an error is its name and message. */
function formatError(error: unknown): string {
  return error instanceof Error ? error.message : JSON.stringify(error);
}
