// The JSON of runs in pieces: payloads are written as they are stored, without being parsed, and large ones without being held.
import type { Reader } from '../../store/database.ts';
import { unpackInPieces, unpackSmall } from '../runs/payload.ts';
import type { FoundRun, PayloadField, Payloads, TraceStore } from '../trace-store.ts';
import { payloadFields, plainJson, type RunField, type ShownRun } from './run-fields.ts';

export type RunReading = {
  readonly store: Pick<TraceStore, 'readPayloads' | 'readPayload'>;
  readonly db: Reader;
  readonly workspaceId: string;
  readonly fields: ReadonlySet<RunField>;
};

/** Stored bytes of payloads that are read at once, and of one that is read with others. */
const BATCH_BYTES = 512 * 1024;
const SMALL_BYTES = 128 * 1024;

/** The pieces of each run, in order. */
export async function* writeRuns(
  reading: RunReading,
  shown: readonly ShownRun[],
): AsyncGenerator<{ readonly run: FoundRun; readonly pieces: AsyncIterable<Buffer> }> {
  const wanted = payloadFields.filter((field) => reading.fields.has(field));
  for (const batch of toBatches(shown, wanted)) {
    const runs = batch.map(({ run }) => run);
    const payloads =
      wanted.length === 0
        ? undefined
        : await reading.store.readPayloads(reading.db, {
            ...{ workspaceId: reading.workspaceId, runs, fields: wanted },
            maxBytes: SMALL_BYTES,
          });
    for (const one of batch)
      yield { run: one.run, pieces: writeRun(reading, one, wanted, payloads?.get(one.run.id)) };
  }
}

function toBatches(shown: readonly ShownRun[], wanted: readonly PayloadField[]): readonly ShownRun[][] {
  const batches: ShownRun[][] = [];
  let bytes = Infinity;
  for (const one of shown) {
    const sizes = wanted.map((field) => one.run.sizes[field] ?? 0).filter((size) => size <= SMALL_BYTES);
    const size = sizes.reduce((sum, each) => sum + each, 0);
    if (bytes + size > BATCH_BYTES) {
      batches.push([]);
      bytes = 0;
    }
    bytes += size;
    batches.at(-1)?.push(one);
  }
  return batches;
}

async function* writeRun(
  reading: RunReading,
  shown: ShownRun,
  wanted: readonly PayloadField[],
  payloads: Payloads | undefined,
): AsyncGenerator<Buffer> {
  let pending: Buffer[] = [Buffer.from(plainJson(shown, reading.fields))];
  for (const field of wanted) {
    pending.push(Buffer.from(`,"${field}":`));
    const stored = payloads?.[field];
    const small = stored ? await unpackSmall(stored, SMALL_BYTES) : undefined;
    if (small !== undefined) pending.push(small);
    else if (shown.run.sizes[field] === null && !stored) pending.push(NULL);
    else {
      yield Buffer.concat(pending);
      pending = [];
      yield* writeLarge(reading, shown.run, field);
    }
  }
  yield Buffer.concat([...pending, END]);
}

const NULL = Buffer.from('null');
const END = Buffer.from('}');

async function* writeLarge(
  { store, db, workspaceId }: RunReading,
  run: FoundRun,
  field: PayloadField,
): AsyncGenerator<Buffer> {
  let isEmpty = true;
  for await (const piece of unpackInPieces(store.readPayload(db, { workspaceId, run, field }))) {
    isEmpty = false;
    yield piece;
  }
  if (isEmpty) yield NULL;
}
