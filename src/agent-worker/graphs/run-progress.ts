// What the checkpoints of a run tell as it goes: its last values, and whether it waits for somebody.
import type { RunEnd } from '../protocol/calls.ts';
import type { Chunk } from './chunk-event.ts';
import { writeJson } from './json-text.ts';

type Task = { readonly id: string; readonly interrupts?: readonly unknown[] };
type Checkpoint = {
  readonly values: unknown;
  readonly next: readonly string[];
  readonly tasks: readonly Task[];
};

export type RunProgress = {
  /** Chunks of the mode `debug` count, those of subgraphs do not. */
  add(chunk: Chunk): void;
  /** As if the graph had come to this checkpoint. */
  set(checkpoint: Checkpoint): void;
  end(): RunEnd;
};

export function createRunProgress(): RunProgress {
  let last: { readonly checkpoint: Checkpoint; readonly tasks: Map<string, Task> } | undefined;
  const set = (checkpoint: Checkpoint): void => {
    last = { checkpoint, tasks: new Map(checkpoint.tasks.map((task) => [task.id, task])) };
  };
  return {
    set,
    add({ namespace, mode, payload }) {
      if (mode !== 'debug' || namespace.length > 0) return;
      const chunk = payload as { readonly type: string; readonly payload: unknown };
      if (chunk.type === 'checkpoint') set(chunk.payload as Checkpoint);
      if (chunk.type !== 'task_result' || last === undefined) return;
      const result = chunk.payload as Task;
      if (last.tasks.has(result.id)) last.tasks.set(result.id, result);
    },
    end() {
      const tasks = [...(last?.tasks.values() ?? [])];
      const interrupts = tasks.flatMap(({ id, interrupts: of = [] }) => (of.length === 0 ? [] : [[id, of]]));
      return {
        status: (last?.checkpoint.next.length ?? 0) > 0 ? 'interrupted' : 'success',
        values: writeJson(last?.checkpoint.values ?? null, 'The state of the graph'),
        interrupts: writeJson(Object.fromEntries(interrupts), 'The interrupts of the graph'),
      };
    },
  };
}
