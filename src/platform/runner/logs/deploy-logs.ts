// The lines of deployed revisions on their way to the database: masked and limited for each revision, limited for all of them together, and
// written in batches. Hostile programs print for ever, and a database that is away takes nothing: what does not fit is counted.
import { DomainError } from '../../../base/domain-error.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import { appendLogs, type StoredLine } from '../../deployments/deployment-logs.ts';
import { LogClock } from '../../deployments/log-clock.ts';
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
/** Of all revisions together, in bytes. One that has less than its part of them goes on when others have taken them all. */
const MAX_WAITING = 32 * 1024 * 1024;
/** What a revision may write in an hour; what it did not write before counts up to one hour. */
const HOURLY_BYTES = 64 * 1024 * 1024;
const HOUR_MS = 3_600_000;

export function createDeployLogs(options: {
  readonly db: Database;
  readonly log: Pick<Log, 'warn'>;
  readonly now?: () => number;
  readonly hourlyBytes?: number;
  readonly maxWaiting?: number;
}): DeployLogs {
  const { db, log, now = () => performance.now() } = options;
  const { hourlyBytes = HOURLY_BYTES, maxWaiting = MAX_WAITING } = options;
  return new Logs({ db, log, now, hourlyBytes, maxWaiting });
}

type LogsParts = {
  readonly db: Database;
  readonly log: Pick<Log, 'warn'>;
  readonly now: () => number;
  readonly hourlyBytes: number;
  readonly maxWaiting: number;
};

type Source = {
  readonly revision: LoggedRevision;
  readonly queue: LineQueue;
  readonly allowance: Allowance;
  isClosed: boolean;
};

class Logs implements DeployLogs {
  readonly #parts: LogsParts;
  readonly #clock = new LogClock();
  readonly #sources = new Set<Source>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** In the order of their times. */
  #batch: readonly StoredLine[] = [];

  constructor(parts: LogsParts) {
    this.#parts = parts;
  }

  open(revision: LoggedRevision, mask: Mask): RevisionLog {
    const { now, hourlyBytes } = this.#parts;
    const limits = `${Math.round(hourlyBytes / 1024 ** 2)} MiB an hour`;
    const queue = new LineQueue({ mask, now, limits });
    const allowance = createAllowance(hourlyBytes, now);
    const source: Source = { revision, queue, allowance, isClosed: false };
    this.#sources.add(source);
    return {
      mask,
      add: (line, isCut = false) => {
        if (source.isClosed) return;
        if (this.#mayWait(queue) && allowance.take(line.message.length))
          queue.add({ at: new Date(), ...line }, isCut);
        else queue.drop();
        this.#schedule();
      },
      close: () => {
        source.isClosed = true;
        this.#schedule();
      },
    };
  }

  #mayWait(queue: LineQueue): boolean {
    const { maxWaiting } = this.#parts;
    if (queue.bytes < maxWaiting / this.#sources.size) return true;
    let waiting = this.#batch.reduce((sum, { message }) => sum + message.length, 0);
    for (const one of this.#sources) waiting += one.queue.bytes;
    return waiting < maxWaiting;
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
        const isLeft = this.#batch.length > 0 || [...this.#sources].some(({ queue }) => queue.size > 0);
        if (isLeft) this.#schedule();
      });
    }, FLUSH_MS).unref();
  }

  /** Never rejects. What a database that is away does not take is first the next time. */
  async #flush(): Promise<void> {
    if (this.#batch.length === 0) this.#batch = this.#take();
    while (this.#batch.length > 0) {
      if (!(await this.#write(this.#batch.slice(0, BATCH_LINES)))) return;
      this.#batch = this.#batch.slice(BATCH_LINES);
    }
  }

  /**
   * A batch of each revision: one that prints much delays the lines of no other. Those of all are in the order of their times, so that who
   * has read up to a time has read what was printed before.
   */
  #take(): readonly StoredLine[] {
    const taken: StoredLine[] = [];
    for (const source of [...this.#sources]) {
      const lines = source.queue.take(BATCH_LINES);
      taken.push(...lines.map((line) => ({ ...line, ...source.revision, kind: 'deploy' as const })));
      if (source.isClosed && source.queue.size === 0) this.#sources.delete(source);
    }
    return taken.toSorted((a, b) => a.at.getTime() - b.at.getTime());
  }

  /** False: the database has not taken them. */
  async #write(lines: readonly StoredLine[]): Promise<boolean> {
    try {
      await appendLogs(this.#parts.db, lines, this.#clock);
      return true;
    } catch (error) {
      const isAway = error instanceof DomainError && error.kind === 'unavailable';
      const what = isAway ? 'lines of deployments wait to be stored' : 'lines of deployments were not stored';
      this.#parts.log.warn({ ...describeBug(error), lines: lines.length }, what);
      return !isAway;
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
