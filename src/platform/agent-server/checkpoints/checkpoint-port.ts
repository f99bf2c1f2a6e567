// What a worker may do with checkpoints during one call: those of one thread alone, and while a run owns the thread's lease, only
// as that attempt of that run.
import type { ServerCalls } from '../../../agent-worker/protocol/calls.ts';
import { DomainError } from '../../../base/domain-error.ts';
import type { Store } from '../../store/database.ts';
import { type CheckpointParams, parseCheckpointParams } from './checkpoint-params.ts';
import { findLatestId, listCheckpoints, readCheckpoint } from './checkpoint-reading.ts';
import { removeCheckpoints } from './checkpoint-removal.ts';
import { type CheckpointScope, requireOwnThread, requireWritable } from './checkpoint-scope.ts';
import { type CheckpointWriter, createCheckpointWriter } from './checkpoint-writer.ts';
import { LatestRead } from './latest-read.ts';

/** Serves the calls of a worker. */
export type CheckpointPort = {
  /**
   * Rejects with DomainError `conflict` where the worker asks for what it may not have, and with another error where the database cannot
   * do it now.
   */
  handle<M extends keyof ServerCalls>(
    method: M,
    params: ServerCalls[M]['params'],
  ): Promise<ServerCalls[M]['result']>;
};

export function createCheckpointPort(
  store: Pick<Store, 'db' | 'write'>,
  scope: CheckpointScope,
): CheckpointPort {
  const latest = new LatestRead();
  const writer = createCheckpointWriter(store, scope, latest);
  const handlers = createHandlers(store, scope, { writer, latest });
  return {
    async handle(method, params) {
      const handler: Handler<typeof method> = handlers[method];
      const parsed = parseCheckpointParams(method, params);
      requireOwnThread(scope, parsed.thread_id);
      return handler(parsed);
    },
  };
}

type Handler<M extends keyof ServerCalls> = (
  params: CheckpointParams[M],
) => Promise<ServerCalls[M]['result']>;
type Handlers = { readonly [M in keyof ServerCalls]: Handler<M> };

function createHandlers(
  store: Pick<Store, 'db' | 'write'>,
  scope: CheckpointScope,
  { writer, latest }: { readonly writer: CheckpointWriter; readonly latest: LatestRead },
): Handlers {
  return {
    // What the worker wrote before is read, although it may not have waited for it.
    async 'checkpoint.get'(params) {
      await writer.settled();
      const found = await readCheckpoint(store.db, params);
      if (params.checkpoint_id === undefined) latest.read(params.checkpoint_ns, found?.checkpoint_id);
      // What follows it must come after the latest one too.
      else if (found !== null && scope.isReadOnly !== true)
        return { ...found, latest_checkpoint_id: await findLatestId(store.db, found) };
      return found;
    },
    async 'checkpoint.list'(params) {
      await writer.settled();
      return listCheckpoints(store.db, params);
    },
    async 'checkpoint.put'(params) {
      requireWritable(scope);
      await writer.store({ puts: [params], put_writes: [] });
      return null;
    },
    async 'checkpoint.put_writes'(params) {
      requireWritable(scope);
      await writer.store({ puts: [], put_writes: [params] });
      return null;
    },
    async 'checkpoint.put_all'(params) {
      requireWritable(scope);
      await writer.store(params);
      return null;
    },
    async 'checkpoint.delete_thread'() {
      requireWritable(scope);
      await writer.settled();
      await store.write((trx) => removeCheckpoints(trx, scope));
      return null;
    },
    async 'checkpoint.copy_thread'() {
      throw new DomainError('conflict', 'Copy a thread by POST /threads/{thread_id}/copy');
    },
  };
}
