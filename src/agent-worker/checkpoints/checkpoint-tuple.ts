// Checkpoints as the library has them, and as the server stores them: the values of the channels apart from the checkpoint, each
// under its version.
import type { GraphConfig, Serializer } from '../graphs/library.ts';
import type { CheckpointPlace, ServerCalls, StoredCheckpoint } from '../protocol/calls.ts';
import { createNextVersion } from './channel-version.ts';
import { readTyped, writeTyped } from './typed-value.ts';

export type Checkpoint = {
  readonly v: number;
  readonly id: string;
  readonly channel_values: Readonly<Record<string, unknown>>;
  readonly channel_versions: Readonly<Record<string, string | number>>;
  readonly versions_seen?: Readonly<Record<string, Readonly<Record<string, string | number>>>>;
};

export type PendingWrite = readonly [taskId: string, channel: string, value: unknown];

export type CheckpointTuple = {
  readonly config: GraphConfig;
  readonly checkpoint: Checkpoint;
  readonly metadata: Record<string, unknown>;
  readonly parentConfig?: GraphConfig;
  readonly pendingWrites: readonly PendingWrite[];
};

type StoredPut = ServerCalls['checkpoint.put']['params'];

/** Where the sends of a step are: until format 4 they were writes of the checkpoint before. */
const SENDS = '__pregel_tasks';
const FORMAT_WITH_SENDS = 4;

export async function readTuple(serde: Serializer, stored: StoredCheckpoint): Promise<CheckpointTuple> {
  const [checkpoint, metadata, values, pendingWrites] = await Promise.all([
    readTyped(serde, stored.checkpoint),
    readTyped(serde, stored.metadata),
    Promise.all(
      stored.values.map(async (entry) => [entry.channel, await readTyped(serde, entry.value)] as const),
    ),
    readWrites(serde, stored),
  ]);
  const { parent_checkpoint_id: parent } = stored;
  return {
    config: { configurable: configurableOf(stored) },
    checkpoint: { ...(checkpoint as Checkpoint), channel_values: Object.fromEntries(values) },
    metadata: metadata as Record<string, unknown>,
    ...(parent === undefined
      ? {}
      : { parentConfig: { configurable: configurableOf({ ...stored, checkpoint_id: parent }) } }),
    pendingWrites,
  };
}

export function lacksSends({ checkpoint, parentConfig }: CheckpointTuple): boolean {
  return checkpoint.v < FORMAT_WITH_SENDS && parentConfig !== undefined;
}

/** The tuple of an old checkpoint with the sends that its parent has as writes. */
export function withSends(tuple: CheckpointTuple, parentWrites: readonly PendingWrite[]): CheckpointTuple {
  const { checkpoint } = tuple;
  const sends = parentWrites.filter(([, channel]) => channel === SENDS).map(([, , value]) => value);
  const versions = Object.values(checkpoint.channel_versions).toSorted();
  const version = versions.at(-1) ?? createNextVersion(undefined);
  return {
    ...tuple,
    checkpoint: {
      ...checkpoint,
      channel_values: { ...checkpoint.channel_values, [SENDS]: sends },
      channel_versions: { ...checkpoint.channel_versions, [SENDS]: version },
    },
  };
}

export function readWrites(
  serde: Serializer,
  { writes }: Pick<StoredCheckpoint, 'writes'>,
): Promise<PendingWrite[]> {
  return Promise.all(
    writes.map(
      async ({ task_id, channel, value }): Promise<PendingWrite> => [
        task_id,
        channel,
        await readTyped(serde, value),
      ],
    ),
  );
}

/** `newVersions` names the channels whose values the server does not have yet. */
export async function writeTuple(
  serde: Serializer,
  place: CheckpointPlace,
  checkpoint: Checkpoint,
  metadata: Readonly<Record<string, unknown>>,
  newVersions: Readonly<Record<string, string | number>>,
): Promise<StoredPut> {
  const { channel_values: channelValues, ...rest } = checkpoint;
  const changed = Object.entries(newVersions).filter(([channel]) => Object.hasOwn(channelValues, channel));
  const writeValue = async ([channel, version]: [string, string | number]): Promise<
    StoredPut['values'][number]
  > => ({
    channel,
    version: String(version),
    value: await writeTyped(serde, channelValues[channel]),
  });
  const [written, writtenMetadata, values] = await Promise.all([
    writeTyped(serde, rest),
    writeTyped(serde, metadata),
    Promise.all(changed.map(writeValue)),
  ]);
  return {
    thread_id: place.thread_id,
    checkpoint_ns: place.checkpoint_ns,
    checkpoint_id: checkpoint.id,
    ...(place.checkpoint_id === undefined ? {} : { parent_checkpoint_id: place.checkpoint_id }),
    checkpoint: written,
    metadata: writtenMetadata,
    searched_metadata: JSON.parse(JSON.stringify(metadata)),
    versions: Object.fromEntries(
      Object.entries(checkpoint.channel_versions).map(([channel, version]) => [channel, String(version)]),
    ),
    values,
  };
}

export function configurableOf({
  thread_id,
  checkpoint_ns,
  checkpoint_id,
}: CheckpointPlace): Record<string, unknown> {
  return { thread_id, checkpoint_ns, ...(checkpoint_id === undefined ? {} : { checkpoint_id }) };
}
