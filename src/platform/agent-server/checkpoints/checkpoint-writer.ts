// Writes checkpoints and the writes of tasks for one call of a worker. What arrives while a statement is under way waits for it, and
// then goes together: the parallel tasks of a superstep cost few commits, and one that is alone waits for nobody.
import type { Store } from '../../store/database.ts';
import { toSearchable } from '../json-for-search.ts';
import type { CheckpointParams } from './checkpoint-params.ts';
import { type CheckpointScope, LateWrite } from './checkpoint-scope.ts';
import type { LatestRead } from './latest-read.ts';
import { ValuePack } from './value-pack.ts';
import { lockThreadToUpdate, writeAsRun, writeAsUpdate } from './write-statements.ts';

type PutAll = Pick<CheckpointParams['checkpoint.put_all'], 'puts' | 'put_writes'>;
type Put = PutAll['puts'][number];
type PutWrites = PutAll['put_writes'][number];

export type CheckpointWriter = {
  /** Resolves when it is committed. Rejects with DomainError where the caller may not write any more. */
  store(params: PutAll): Promise<void>;
  /** Resolves when what was asked for before has ended, also where it failed. */
  settled(): Promise<void>;
};

/** A batch that has so many takes no more. */
const MAX_BATCH_BYTES = 32 * 1024 * 1024;

export function createCheckpointWriter(
  store: Pick<Store, 'db' | 'write'>,
  scope: CheckpointScope,
  latest: LatestRead,
): CheckpointWriter {
  let next: Batch | undefined;
  let last: Promise<void> = Promise.resolve();
  const add = (fill: (batch: Batch) => void): Promise<void> => {
    if (next === undefined || next.size > MAX_BATCH_BYTES) {
      const batch = new Batch();
      next = batch;
      // It is open until those before it are written.
      const written = last.then(() => {
        if (next === batch) next = undefined;
        return write(store, scope, { batch, latest });
      });
      batch.written = written;
      last = written.catch(() => undefined);
    }
    fill(next);
    return next.written;
  };
  return {
    store: ({ puts, put_writes: putWrites }) =>
      add((batch) => {
        for (const put of puts) batch.put(put);
        for (const writes of putWrites) batch.putWrites(writes);
      }),
    settled: () => last,
  };
}

async function write(
  store: Pick<Store, 'db' | 'write'>,
  scope: CheckpointScope,
  { batch, latest }: { readonly batch: Batch; readonly latest: LatestRead },
): Promise<void> {
  const { threadId, lease } = scope;
  const given = { threadId, ...batch.toLists() };
  if (lease !== undefined) {
    const [allowed] = await writeAsRun(store.db, { ...given, ...lease });
    if (allowed === undefined) throw new LateWrite('attempt_ended');
    return;
  }
  await store.write(async (trx) => {
    const [thread] = await lockThreadToUpdate(trx, { threadId });
    if (thread === undefined) throw new LateWrite('thread_gone');
    if (thread.status === 'busy') throw new LateWrite('run_begun');
    const [allowed] = await writeAsUpdate(trx, { ...given, latest: latest.toJson() });
    if (allowed === undefined) throw new LateWrite('state_changed');
  });
  for (const { ns, id } of batch.places) latest.written(ns, id);
}

type Row = Readonly<Record<string, unknown>>;
type Place = { readonly ns: string; readonly id: string };

/** The rows of one statement, which changes none of them twice. */
class Batch {
  written: Promise<void> = Promise.resolve();
  readonly #pack = new ValuePack();
  readonly #checkpoints = new Map<string, Row & Place>();
  readonly #values: Row[] = [];
  readonly #writes = new Map<string, Row>();

  get size(): number {
    return this.#pack.length;
  }

  /** Of its checkpoints. */
  get places(): Iterable<Place> {
    return this.#checkpoints.values();
  }

  put({ checkpoint_ns: ns, checkpoint_id: id, parent_checkpoint_id: parent, ...params }: Put): void {
    const { checkpoint, metadata, searched_metadata, versions, values } = params;
    const packed = this.#pack.add(metadata);
    this.#checkpoints.set(keyOf(ns, id), {
      ...{ ns, id, parent, versions, ...this.#pack.add(checkpoint) },
      ...{ metadata_type: packed.type, metadata_start: packed.start, metadata_length: packed.length },
      searched: toSearchable(JSON.stringify(searched_metadata)),
    });
    for (const { channel, version, value } of values)
      this.#values.push({ ns, channel, version, ...this.#pack.add(value) });
  }

  putWrites({ checkpoint_ns: ns, checkpoint_id: id, task_id: task, writes }: PutWrites): void {
    for (const { idx, channel, value } of writes) {
      const key = keyOf(ns, id, task, idx);
      // Of the graph itself the last one counts, such as an interrupt; of the others the first, as for those that are stored.
      if (idx < 0 || !this.#writes.has(key))
        this.#writes.set(key, { ns, id, task, idx, channel, ...this.#pack.add(value) });
    }
  }

  toLists() {
    return {
      checkpoints: JSON.stringify([...this.#checkpoints.values()]),
      values: JSON.stringify(this.#values),
      writes: JSON.stringify([...this.#writes.values()]),
      bytes: this.#pack.toBytes(),
    };
  }
}

function keyOf(...parts: readonly (string | number)[]): string {
  return JSON.stringify(parts);
}
