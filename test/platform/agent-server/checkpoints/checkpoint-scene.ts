// What a worker sends of checkpoints, with what a test does not name filled in.
import type { ServerCalls } from '../../../../src/agent-worker/protocol/calls.ts';
import type { Typed } from '../../../../src/agent-worker/protocol/messages.ts';

type Put = ServerCalls['checkpoint.put']['params'];

export const json = (value: unknown): Typed => ({ type: 'json', text: JSON.stringify(value) });

/** A checkpoint whose channels have the given versions; the values of `fresh` are sent with it. */
export function putOf(
  threadId: string,
  id: string,
  given: Partial<Put> & { readonly fresh?: Readonly<Record<string, string>> } = {},
): Put {
  const { fresh = {}, ...rest } = given;
  return {
    ...{ thread_id: threadId, checkpoint_ns: '', checkpoint_id: id },
    ...{ checkpoint: json({ id }), metadata: json({ step: 0 }), searched_metadata: { step: 0 } },
    versions: fresh,
    values: Object.entries(fresh).map(([channel, version]) => ({
      ...{ channel, version, value: json(`${channel} ${version}`) },
    })),
    ...rest,
  };
}

export function writesOf(
  threadId: string,
  id: string,
  task: string,
  writes: Readonly<Record<number, unknown>>,
) {
  return {
    ...{ thread_id: threadId, checkpoint_ns: '', checkpoint_id: id, task_id: task },
    writes: Object.entries(writes).map(([idx, value]) => ({
      ...{ idx: Number(idx), channel: 'messages', value: json(value) },
    })),
  };
}
