// The times of log lines, by the clock of the database: runners of several machines write to one log, which clients follow by time, and a
// clock that is ahead would hide from them what is written after it.
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';

export type LogClockOptions = {
  /** Rejects where the database is away. */
  readonly readMs: (db: Database) => Promise<number>;
  readonly nowMs: () => number;
};

/** A machine may be set by hand, and drift. */
const COMPARE_MS = 30_000;

export class LogClock {
  readonly #options: LogClockOptions;
  /** Of the database, from that of this machine. */
  #offsetMs: number | undefined;
  #comparedMs = 0;

  constructor(options: LogClockOptions = { readMs, nowMs: Date.now }) {
    this.#options = options;
  }

  /** Before lines are stored: looks at the clock of the database, once in a while. Rejects where it is away. */
  async compare(db: Database): Promise<void> {
    const { nowMs } = this.#options;
    const sinceMs = nowMs() - this.#comparedMs;
    if (this.#offsetMs !== undefined && sinceMs >= 0 && sinceMs < COMPARE_MS) return;
    const sentMs = nowMs();
    const serverMs = await this.#options.readMs(db);
    const receivedMs = nowMs();
    // It was read at some moment in between. What is possible stays as it is, so that times do not jitter.
    const [least, most] = [serverMs - receivedMs, serverMs - sentMs];
    this.#offsetMs = Math.min(Math.max(this.#offsetMs ?? (least + most) / 2, least), most);
    this.#comparedMs = receivedMs;
  }

  /** A time of this machine as the database would have it. */
  toStored(at: Date): Date {
    return new Date(at.getTime() + Math.round(this.#offsetMs ?? 0));
  }
}

async function readMs(db: Database): Promise<number> {
  const { rows } = await sql<{ ms: string }>`
    select (extract(epoch from clock_timestamp()) * 1000)::text as ms`.execute(db);
  return Number(rows[0]?.ms);
}
