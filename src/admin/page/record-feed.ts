// The records of exchanges as rows for the page: the last ones, and those that come. Whatever the proxy does, a page gets so many rows in
// a time and learns how many it did not get; nothing waits for a browser.
import { setTimeout } from 'node:timers/promises';
import type { LiveRecord, LiveRecords } from '../target.ts';
import { type RecordRow, type RowFilter, toRow } from './record-row.ts';

/** How often a page is given rows, and how many at most. */
export const TURN_MS = 250;
export const ROWS_IN_A_TURN = 50;
/** The last rows that are kept while there are sessions. */
export const MAX_RECENT = 200;
/** An empty piece after so long without rows: a browser that is gone is noticed. */
const HEARTBEAT_TURNS = 40;

/** A line of the stream. `skipped`: so many records had no place in this turn. */
export type FeedPiece = {
  readonly rows: readonly RecordRow[];
  readonly skipped: number;
  /** Nothing follows: the session or the sidecar has ended. */
  readonly ended?: 'session' | 'sidecar';
};

type Recent = { readonly record: LiveRecord; readonly row: RecordRow };

export type FeedParts = {
  readonly records: Pick<LiveRecords, 'follow'>;
  /** Whether there are sessions: without them nothing is kept. */
  isWatched(): boolean;
  /** Monotonic, in milliseconds. */
  now(): number;
};

export class RecordFeed {
  readonly #parts: FeedParts;
  #recent: Recent[] = [];
  #stop: (() => void) | undefined;
  #turnEndsMs = 0;
  #inTurn = 0;

  constructor(parts: FeedParts) {
    this.#parts = parts;
  }

  /** Keeps the last rows from now on, while there are sessions. */
  begin(): void {
    this.#stop ??= this.#parts.records.follow((record) => this.#keep(record));
  }

  /** The newest last. */
  recent(isWanted: RowFilter): readonly RecordRow[] {
    return this.#recent.filter(({ record }) => isWanted(record)).map(({ row }) => row);
  }

  /** First the last rows, then what comes. `isOpen` is asked in each turn. It ends without a word when `left` aborts. */
  async *stream(isWanted: RowFilter, { left, draining, isOpen }: StreamEnds): AsyncGenerator<Buffer> {
    const waiting = new WaitingRows();
    const stop = this.#parts.records.follow((record) => {
      if (isWanted(record)) waiting.add(record);
    });
    const gone = AbortSignal.any([left, draining]);
    try {
      yield lineOf({ rows: this.recent(isWanted), skipped: 0 });
      for (let quiet = 0; !gone.aborted && isOpen(); ) {
        await setTimeout(TURN_MS, undefined, { signal: gone, ref: false }).catch(() => undefined);
        quiet = waiting.isEmpty ? quiet + 1 : 0;
        if (quiet > 0 && quiet % HEARTBEAT_TURNS !== 0) continue;
        yield lineOf(waiting.take());
      }
      if (!left.aborted) yield lineOf({ ...NOTHING, ended: draining.aborted ? 'sidecar' : 'session' });
    } finally {
      stop();
    }
  }

  /** Within the exchange: most records of a flood cost a comparison. */
  #keep(record: LiveRecord): void {
    const now = this.#parts.now();
    if (now >= this.#turnEndsMs) {
      if (!this.#parts.isWatched()) return this.#end();
      this.#turnEndsMs = now + TURN_MS;
      this.#inTurn = 0;
    }
    this.#inTurn += 1;
    if (this.#inTurn > ROWS_IN_A_TURN) return;
    this.#recent.push({ record, row: toRow(record, Date.now()) });
    if (this.#recent.length > MAX_RECENT) this.#recent.shift();
  }

  #end(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#recent = [];
  }
}

export type StreamEnds = {
  readonly left: AbortSignal;
  readonly draining: AbortSignal;
  isOpen(): boolean;
};

const NOTHING: FeedPiece = { rows: [], skipped: 0 };

class WaitingRows {
  #rows: RecordRow[] = [];
  #skipped = 0;

  get isEmpty(): boolean {
    return this.#rows.length === 0;
  }

  add(record: LiveRecord): void {
    if (this.#rows.length < ROWS_IN_A_TURN) this.#rows.push(toRow(record, Date.now()));
    else this.#skipped += 1;
  }

  take(): FeedPiece {
    const piece = { rows: this.#rows, skipped: this.#skipped };
    this.#rows = [];
    this.#skipped = 0;
    return piece;
  }
}

function lineOf(piece: FeedPiece): Buffer {
  return Buffer.from(`${JSON.stringify(piece)}\n`, 'utf8');
}
