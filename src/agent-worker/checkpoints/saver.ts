// The checkpoint saver that graphs get: derived from the base class of the deployment's own library, and without storage of its
// own. Each call of the server has one, which ends with the call.
import type { BaseSaver, GraphConfig, Library, Serializer } from '../graphs/library.ts';
import type { CheckpointPlace, ServerCalls } from '../protocol/calls.ts';
import type { JsonObject } from '../protocol/messages.ts';
import { createNextVersion } from './channel-version.ts';
import {
  type Checkpoint,
  type CheckpointTuple,
  configurableOf,
  lacksSends,
  type PendingWrite,
  readTuple,
  withSends,
  writeTuple,
} from './checkpoint-tuple.ts';
import { createPutTracker, type PutParts, type PutTracker } from './put-tracker.ts';
import { createResumeMark, isForAnyTask, isOfCommand } from './resume-mark.ts';
import { writeTyped } from './typed-value.ts';

type Versions = Readonly<Record<string, string | number>>;
type ListOptions = { readonly limit?: number; readonly before?: GraphConfig; readonly filter?: JsonObject };

export type Saver = BaseSaver & {
  getTuple(config: GraphConfig): Promise<CheckpointTuple | undefined>;
  list(config: GraphConfig, options?: ListOptions): AsyncGenerator<CheckpointTuple>;
  put(
    config: GraphConfig,
    checkpoint: Checkpoint,
    metadata: JsonObject,
    newVersions: Versions,
  ): Promise<GraphConfig>;
  putWrites(config: GraphConfig, writes: readonly [string, unknown][], taskId: string): Promise<void>;
  deleteThread(threadId: string): Promise<void>;
  getNextVersion(current: string | number | undefined): string;
  /** From now on, checkpoints come without a value to resume with that no task has taken. */
  forgetResume(): void;
  /** Resolves when the server has what was put. */
  stored(): Promise<void>;
  /** The same; what is put later is refused. */
  end(): Promise<void>;
};

export type SaverParts = PutParts & {
  readonly runId?: string;
  /** What a checkpoint has in its metadata besides what the library gives it. */
  describe?(config: GraphConfig): JsonObject;
  /**
   * Resolves when what is stored from now on comes after this checkpoint, the last one, also where an earlier one is gone on from; absent:
   * nothing is stored.
   */
  follow?(checkpointId: string): Promise<void>;
};

export type CreateSaver = (parts: SaverParts) => Saver;

/** Writes with a number of their own: of these the last of a task counts, of others the first. */
const SPECIAL_WRITES: Readonly<Record<string, number>> = {
  __error__: -1,
  __scheduled__: -2,
  __interrupt__: -3,
  __resume__: -4,
};
const MAX_PAGE = 100;

export function createSaverClass({ BaseCheckpointSaver }: Library): CreateSaver {
  class ServerSaver extends BaseCheckpointSaver {
    readonly #parts: SaverParts;
    readonly #puts: PutTracker;
    /** Those of the last checkpoint that was loaded. */
    #writes: readonly PendingWrite[] = [];
    #forgetsResume = false;

    constructor(parts: SaverParts) {
      super();
      this.#parts = parts;
      this.#puts = createPutTracker(parts);
    }

    async getTuple(config: GraphConfig): Promise<CheckpointTuple | undefined> {
      // The server reads what it was given before.
      this.#puts.flush();
      const tuple = await loadTuple(this.#parts, this.serde, config);
      if (tuple === undefined) return undefined;
      this.#writes = tuple.pendingWrites;
      if (!this.#forgetsResume) return tuple;
      const pendingWrites = tuple.pendingWrites.filter(([taskId, channel]) => !isForAnyTask(taskId, channel));
      return { ...tuple, pendingWrites };
    }

    list(config: GraphConfig, options?: ListOptions): AsyncGenerator<CheckpointTuple> {
      this.#puts.flush();
      return listTuples(this.#parts, this.serde, config, options ?? {});
    }

    async put(
      ...[config, checkpoint, metadata, newVersions]: Parameters<Saver['put']>
    ): Promise<GraphConfig> {
      const place = threadPlace(config);
      const described = { ...this.#parts.describe?.(config), ...metadata };
      await this.#puts.put(() => writeTuple(this.serde, place, checkpoint, described, newVersions));
      return { configurable: configurableOf({ ...place, checkpoint_id: checkpoint.id }) };
    }

    putWrites(config: GraphConfig, writes: readonly [string, unknown][], taskId: string): Promise<void> {
      const { runId } = this.#parts;
      const isResumed = runId !== undefined && writes.some(([channel]) => isOfCommand(taskId, channel));
      const mark = isResumed ? createResumeMark(this.#writes) : undefined;
      return this.#puts.putWrites(
        () => toPutWrites(this.serde, config, writes, taskId),
        mark && (() => toPutWrites(this.serde, config, [mark], runId ?? '')),
      );
    }

    async deleteThread(threadId: string): Promise<void> {
      this.#puts.flush();
      await this.#parts.callServer('checkpoint.delete_thread', { thread_id: threadId });
    }

    getNextVersion(current: string | number | undefined): string {
      return createNextVersion(current);
    }

    forgetResume(): void {
      this.#forgetsResume = true;
    }

    stored(): Promise<void> {
      return this.#puts.stored();
    }

    end(): Promise<void> {
      return this.#puts.end();
    }
  }
  return (parts) => new ServerSaver(parts);
}

async function loadTuple(
  parts: SaverParts,
  serde: Serializer,
  config: GraphConfig,
): Promise<CheckpointTuple | undefined> {
  const place = placeOf(config);
  if (place === undefined) return undefined;
  const stored = await parts.callServer('checkpoint.get', place);
  if (stored === null) return undefined;
  await parts.follow?.(stored.latest_checkpoint_id ?? stored.checkpoint_id);
  return await completeTuple(parts, serde, await readTuple(serde, stored));
}

async function completeTuple(
  parts: SaverParts,
  serde: Serializer,
  tuple: CheckpointTuple,
): Promise<CheckpointTuple> {
  if (!lacksSends(tuple)) return tuple;
  const parent = placeOf(tuple.parentConfig ?? {});
  const stored = parent === undefined ? null : await parts.callServer('checkpoint.get', parent);
  return stored === null ? tuple : withSends(tuple, (await readTuple(serde, stored)).pendingWrites);
}

async function* listTuples(
  parts: SaverParts,
  serde: Serializer,
  config: GraphConfig,
  { limit = Number.POSITIVE_INFINITY, before, filter }: ListOptions,
): AsyncGenerator<CheckpointTuple> {
  const { thread_id, checkpoint_ns, checkpoint_id } = namesOf(config);
  if (thread_id === undefined) return;
  let last = namesOf(before ?? {}).checkpoint_id;
  for (let count = 0; count < limit; ) {
    const params: ServerCalls['checkpoint.list']['params'] = {
      thread_id,
      ...(checkpoint_ns === undefined ? {} : { checkpoint_ns }),
      ...(checkpoint_id === undefined ? {} : { checkpoint_id }),
      ...(last === undefined ? {} : { before: last }),
      ...(filter === undefined ? {} : { filter }),
      limit: Math.min(limit - count, MAX_PAGE),
    };
    const page = await parts.callServer('checkpoint.list', params);
    if (page.length === 0) return;
    for (const stored of page) {
      yield await completeTuple(parts, serde, await readTuple(serde, stored));
      last = stored.checkpoint_id;
      count += 1;
    }
  }
}

function threadPlace(config: GraphConfig): CheckpointPlace {
  const place = placeOf(config);
  if (place === undefined) throw new Error('A checkpoint needs `configurable.thread_id`.');
  return place;
}

async function toPutWrites(
  serde: Serializer,
  config: GraphConfig,
  writes: readonly (readonly [string, unknown])[],
  taskId: string,
): Promise<ServerCalls['checkpoint.put_writes']['params']> {
  const place = placeOf(config);
  if (place?.checkpoint_id === undefined) {
    throw new Error('Writes need `configurable.thread_id` and `configurable.checkpoint_id`.');
  }
  const written = writes.map(async ([channel, value], index) => ({
    idx: SPECIAL_WRITES[channel] ?? index,
    channel,
    value: await writeTyped(serde, value),
  }));
  return { ...place, task_id: taskId, writes: await Promise.all(written) };
}

/** Undefined without a thread. */
function placeOf(config: GraphConfig): CheckpointPlace | undefined {
  const { thread_id, checkpoint_ns = '', checkpoint_id } = namesOf(config);
  if (thread_id === undefined) return undefined;
  return { thread_id, checkpoint_ns, ...(checkpoint_id === undefined ? {} : { checkpoint_id }) };
}

function namesOf({ configurable }: GraphConfig): Partial<CheckpointPlace> {
  const found: Record<string, string> = {};
  for (const name of ['thread_id', 'checkpoint_ns', 'checkpoint_id']) {
    const value = configurable?.[name];
    if (typeof value === 'string' && (value !== '' || name === 'checkpoint_ns')) found[name] = value;
  }
  return found;
}
