// The lines of deployed revisions on their way to the database: masked and limited for each revision, limited for all of them together, and
// written in batches. Hostile programs print for ever, and a database that is away takes nothing: what does not fit is counted.
import { describeBug, type Log } from '../../../base/log.ts';
import { appendLogs, type StoredLine } from '../../deployments/deployment-logs.ts';
import { LineQueue, type LogLevel, type Mask } from '../../deployments/log-lines.ts';
import type { Database } from '../../store/database.ts';

export type LoggedRevision = {
  readonly workspaceId: string;
  readonly deploymentId: string;
  readonly revisionId: string;
};

export type RevisionLog = {
  readonly mask: Mask;
  add(
    line: { readonly level: LogLevel; readonly message: string; readonly instance?: string },
    isCut?: boolean,
  ): void;
  /** No line follows. What waits is still written. */
  close(): void;
};

export type DeployLogs = {
  open(revision: LoggedRevision, mask: Mask): RevisionLog;
  /** Writes what waits, once. */
  close(): Promise<void>;
};

const FLUSH_MS = 300;
const BATCH_LINES = 500;
/** Of all revisions together, in characters. */
const MAX_WAITING = 32 * 1024 * 1024;
/** What a revision may write in an hour; what it did not write before counts up to one hour. */
const HOURLY_BYTES = 64 * 1024 * 1024;
const HOUR_MS = 3_600_000;

export function createDeployLogs(options: {
  readonly db: Database;
  readonly log: Pick<Log, 'warn'>;
  readonly now?: () => number;
  readonly hourlyBytes?: number;
}): DeployLogs {
  return new Logs(
    options.db,
    options.log,
    options.now ?? (() => performance.now()),
    options.hourlyBytes ?? HOURLY_BYTES,
  );
}

type Source = {
  readonly revision: LoggedRevision;
  readonly queue: LineQueue;
  readonly allowance: Allowance;
  isClosed: boolean;
};

class Logs implements DeployLogs {
  readonly #db: Database;
  readonly #log: Pick<Log, 'warn'>;
  readonly #now: () => number;
  readonly #hourlyBytes: number;
  readonly #sources = new Set<Source>();
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isAway = false;

  constructor(db: Database, log: Pick<Log, 'warn'>, now: () => number, hourlyBytes: number) {
    this.#db = db;
    this.#log = log;
    this.#now = now;
    this.#hourlyBytes = hourlyBytes;
  }

  open(revision: LoggedRevision, mask: Mask): RevisionLog {
    const queue = new LineQueue({ mask, now: this.#now });
    const allowance = createAllowance(this.#hourlyBytes, this.#now);
    const source: Source = { revision, queue, allowance, isClosed: false };
    this.#sources.add(source);
    return {
      mask,
      add: (line, isCut = false) => {
        if (source.isClosed || this.#waiting > MAX_WAITING || !allowance.take(line.message.length)) return;
        const before = queue.size;
        queue.add({ at: new Date(), ...line }, isCut);
        if (queue.size > before) this.#waiting += line.message.length;
        this.#schedule();
      },
      close: () => {
        source.isClosed = true;
        this.#schedule();
      },
    };
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#flush();
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.#writing = this.#flush().finally(() => {
        this.#timer = undefined;
        if ([...this.#sources].some(({ queue }) => queue.size > 0)) this.#schedule();
      });
    }, FLUSH_MS).unref();
  }

  /** A batch of each revision in turn: one that prints much delays the lines of no other. Never rejects. */
  async #flush(): Promise<void> {
    for (const source of [...this.#sources]) {
      const lines = this.#isAway ? [] : source.queue.take(BATCH_LINES);
      // A mask changes lengths: at worst the bound is reached early, until everything is written.
      for (const { message } of lines) this.#waiting -= message.length;
      await this.#write(lines.map((line) => ({ ...line, ...source.revision, kind: 'deploy' as const })));
      if (source.isClosed && source.queue.size === 0) this.#sources.delete(source);
    }
    if ([...this.#sources].every(({ queue }) => queue.size === 0)) this.#waiting = 0;
    this.#isAway = false;
  }

  async #write(lines: readonly StoredLine[]): Promise<void> {
    try {
      await appendLogs(this.#db, lines);
    } catch (error) {
      // The others wait in their queues until the next time.
      this.#isAway = true;
      this.#log.warn({ ...describeBug(error), lines: lines.length }, 'lines of deployments were not stored');
    }
  }
}

type Allowance = { take(bytes: number): boolean };

function createAllowance(hourlyBytes: number, now: () => number): Allowance {
  let left = hourlyBytes;
  let at = now();
  return {
    take(bytes) {
      const sinceMs = now() - at;
      at += sinceMs;
      left = Math.min(hourlyBytes, left + (sinceMs / HOUR_MS) * hourlyBytes);
      if (left < bytes) return false;
      left -= bytes;
      return true;
    },
  };
}
