// The records of exchanges between the sidecars, which write them, and the platform, which stores them. Memory is bounded: a
// sidecar whose records are not taken is not read any more, and then refuses exchanges itself. Pure.
import { randomUUID } from 'node:crypto';
import { z } from '../../base/schema.ts';
import { WaitingReaders } from '../waiting-readers.ts';

export type RecordBatch = {
  readonly boxId: string;
  /** A UUID; with its number it identifies a record. */
  readonly source: string;
  readonly firstNumber: number;
  /** Each a JSON object without its number. */
  readonly records: readonly string[];
};

/** The last record that is stored. */
export const acknowledgement = z.strictObject({ source: z.uuid(), number: z.int().min(0) });
export type Acknowledgement = z.output<typeof acknowledgement>;

/** The records of one box by one sidecar process. */
type Lane = {
  readonly boxId: string;
  readonly source: string;
  readonly writer: RecordWriter;
  firstNumber: number;
  readonly texts: string[];
};

const MAX_BATCH = 500;
const MAX_BATCH_CHARS = 512 * 1024;
/** Of one sidecar. */
const MAX_CHARS = 2 * 1024 * 1024;
/** A record weighs at least this: a short one has the overhead of its objects. */
const ENTRY_CHARS = 128;

export class RecordBook {
  /** By source, in the order in which they are offered; none of them is empty. */
  readonly #lanes = new Map<string, Lane>();
  readonly #waiting = new WaitingReaders();

  /** For one sidecar process. `onCapacity` is called when a full writer may write again. */
  createWriter(onCapacity: () => void): RecordWriter {
    const ofBoxes = new Map<string, Lane>();
    return new RecordWriter(onCapacity, (boxId, text, writer) => {
      const lane = ofBoxes.get(boxId) ?? { boxId, source: randomUUID(), writer, firstNumber: 0, texts: [] };
      ofBoxes.set(boxId, lane);
      lane.texts.push(text);
      this.#lanes.set(lane.source, lane);
      this.#waiting.wakeAll();
    });
  }

  /** The oldest records of one box, which are offered again until they are acknowledged; undefined when the signal aborts. */
  async next(signal: AbortSignal): Promise<RecordBatch | undefined> {
    while (this.#lanes.size === 0) {
      if (signal.aborted) return undefined;
      await this.#waiting.wait(signal);
    }
    const [first] = this.#lanes;
    if (first === undefined || signal.aborted) return undefined;
    const [source, { boxId, firstNumber, texts }] = first;
    return { boxId, source, firstNumber, records: texts.slice(0, batchLength(texts)) };
  }

  /** The same acknowledgement again changes nothing. */
  acknowledge({ source, number }: Acknowledgement): void {
    const lane = this.#lanes.get(source);
    if (lane === undefined) return;
    const count = Math.min(lane.texts.length, number + 1 - lane.firstNumber);
    if (count <= 0) return;
    const gone = lane.texts.splice(0, count);
    lane.firstNumber += count;
    // Behind the others, so that a busy box delays no other.
    this.#lanes.delete(source);
    if (lane.texts.length > 0) this.#lanes.set(source, lane);
    lane.writer.release(gone.reduce((sum, text) => sum + weigh(text), 0));
  }
}

export class RecordWriter {
  readonly #onCapacity: () => void;
  readonly #write: (boxId: string, text: string, writer: RecordWriter) => void;
  #chars = 0;

  constructor(onCapacity: () => void, write: (boxId: string, text: string, writer: RecordWriter) => void) {
    this.#onCapacity = onCapacity;
    this.#write = write;
  }

  get isFull(): boolean {
    return this.#chars >= MAX_CHARS;
  }

  /** `text`: a JSON object. */
  write(boxId: string, text: string): void {
    this.#chars += weigh(text);
    this.#write(boxId, text, this);
  }

  release(chars: number): void {
    const wasFull = this.isFull;
    this.#chars -= chars;
    if (wasFull && !this.isFull) this.#onCapacity();
  }
}

function weigh(text: string): number {
  return text.length + ENTRY_CHARS;
}

function batchLength(texts: readonly string[]): number {
  let chars = 0;
  let count = 0;
  for (const { length } of texts) {
    chars += length;
    if (count === MAX_BATCH || (count > 0 && chars > MAX_BATCH_CHARS)) break;
    count += 1;
  }
  return count;
}
