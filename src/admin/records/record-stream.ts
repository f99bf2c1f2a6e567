// The records of exchanges as a stream of JSON lines, for one reader. A reader that is slower than the records loses some and learns how
// many; what waits for it is bounded, and the proxy never waits.
import { setTimeout } from 'node:timers/promises';
import type { LiveRecords } from '../target.ts';
import type { RecordFilter } from './record-filter.ts';

/** Characters that wait for one reader. */
const MAX_WAITING_CHARS = 512 * 1024;
/** How long a record waits for others: a write for each would cost more than the record. */
const LINGER_MS = 50;
/** An empty line after so long without a record: whoever is between must not take the connection for an idle one. */
const HEARTBEAT_MS = 15_000;

/** A line that is no record. `dropped`: so many records were lost here. `ended`: the sidecar ends. */
export type StreamNotice =
  | { readonly notice: 'dropped'; readonly count: number }
  | { readonly notice: 'ended' };

/** How many may read at once. */
export class Readers {
  readonly #max: number;
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** False: there are too many. Otherwise the place is taken until `ended` resolves. */
  enter(ended: Promise<unknown>): boolean {
    if (this.#count >= this.#max) return false;
    this.#count += 1;
    void ended.finally(() => (this.#count -= 1));
    return true;
  }
}

/** Ends without a word when `left` aborts, and with a notice when `draining` does. It follows the records from its first step on. */
export async function* streamRecords(
  records: Pick<LiveRecords, 'follow'>,
  isWanted: RecordFilter,
  { left, draining }: { readonly left: AbortSignal; readonly draining: AbortSignal },
): AsyncGenerator<Buffer> {
  const ended = AbortSignal.any([left, draining]);
  const waiting = new WaitingRecords();
  const stop = records.follow((record, text) => {
    if (isWanted(record)) waiting.add(text);
  });
  try {
    while (!ended.aborted) {
      await waiting.arrival(ended);
      if (!waiting.isEmpty) await setTimeout(LINGER_MS, undefined, { signal: ended }).catch(() => undefined);
      if (!ended.aborted || !waiting.isEmpty) yield waiting.take();
    }
    if (draining.aborted) yield Buffer.from(lineOf({ notice: 'ended' }));
  } finally {
    stop();
  }
}

class WaitingRecords {
  #lines: string[] = [];
  #chars = 0;
  #dropped = 0;
  #wake: () => void = () => undefined;

  get isEmpty(): boolean {
    return this.#lines.length === 0 && this.#dropped === 0;
  }

  /** After a record that was dropped the next ones are too, until the reader has taken what waits: its notice is where they were. */
  add(text: () => string): void {
    if (this.#dropped > 0 || this.#chars >= MAX_WAITING_CHARS) {
      this.#dropped += 1;
      return;
    }
    const line = `${text()}\n`;
    this.#lines.push(line);
    this.#chars += line.length;
    this.#wake();
  }

  /** Resolves when a record waits, after the time of a heartbeat, and when `signal` aborts. */
  async arrival(signal: AbortSignal): Promise<void> {
    if (!this.isEmpty || signal.aborted) return;
    const arrived = new AbortController();
    this.#wake = () => arrived.abort();
    const first = AbortSignal.any([arrived.signal, signal]);
    await setTimeout(HEARTBEAT_MS, undefined, { signal: first, ref: false }).catch(() => undefined);
    this.#wake = () => undefined;
  }

  /** What waits; an empty line if nothing does. */
  take(): Buffer {
    const notice = this.#dropped > 0 ? lineOf({ notice: 'dropped', count: this.#dropped }) : '';
    const text = this.isEmpty ? '\n' : this.#lines.join('') + notice;
    this.#lines = [];
    this.#chars = 0;
    this.#dropped = 0;
    return Buffer.from(text, 'utf8');
  }
}

function lineOf(notice: StreamNotice): string {
  return `${JSON.stringify(notice)}\n`;
}
