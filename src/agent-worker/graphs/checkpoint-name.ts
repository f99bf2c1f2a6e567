// Checkpoints as clients name them, taken from the config that the library has for each.
import type { GraphConfig } from './library.ts';

export type CheckpointName = {
  readonly thread_id: string;
  readonly checkpoint_id: string | null;
  readonly checkpoint_ns: string;
  readonly checkpoint_map: unknown;
};

/** Null where the config names no checkpoint. */
export function nameCheckpoint(config: GraphConfig | undefined): CheckpointName | null {
  const name = nameTaskCheckpoint(config);
  return name === null || name.checkpoint_id === null ? null : name;
}

/** Of the subgraph of a task, which may have no checkpoint yet. */
export function nameTaskCheckpoint(config: GraphConfig | undefined): CheckpointName | null {
  const { thread_id, checkpoint_id, checkpoint_ns, checkpoint_map } = config?.configurable ?? {};
  if (typeof thread_id !== 'string' || thread_id === '') return null;
  return {
    thread_id,
    checkpoint_id: typeof checkpoint_id === 'string' && checkpoint_id !== '' ? checkpoint_id : null,
    checkpoint_ns: typeof checkpoint_ns === 'string' ? checkpoint_ns : '',
    checkpoint_map: checkpoint_map ?? null,
  };
}
