// The log of one build on its way to the database: limited, written in batches, and complete when the build has ended.
import { setTimeout as delay } from 'node:timers/promises';
import { describeBug, type Log } from '../../base/log.ts';
import { appendLogs } from '../deployments/deployment-logs.ts';
import { LogClock } from '../deployments/log-clock.ts';
import { type LogLevel, type LogLine, LineQueue, type Mask } from '../deployments/log-lines.ts';
import type { Database } from '../store/database.ts';

export type LoggedBuild = {
  readonly workspaceId: string;
  readonly deploymentId: string;
  readonly revisionId: string;
};

export type BuildLogOptions = {
  readonly log: Pick<Log, 'warn'>;
  readonly mask: Mask;
  /** Of all lines that are stored. */
  readonly maxChars?: number;
};

const FLUSH_MS = 300;
const BATCH_LINES = 500;
const MAX_CHARS: number = 16 * 1024 * 1024;
/** A database that is away for longer when the build ends loses the lines. */
const END_ATTEMPTS = 20;
const END_PAUSE_MS = 250;

export class BuildLog {
  readonly #db: Database;
  readonly #build: LoggedBuild;
  readonly #log: Pick<Log, 'warn'>;
  readonly #maxChars: number;
  readonly #queue: LineQueue;
  readonly #clock = new LogClock();
  readonly #timer: NodeJS.Timeout;
  #left: number;
  /** What the database has not taken. */
  #batch: readonly LogLine[] = [];
  #writing: Promise<unknown> = Promise.resolve();

  constructor(db: Database, build: LoggedBuild, { log, mask, maxChars = MAX_CHARS }: BuildLogOptions) {
    this.#queue = new LineQueue({ mask, now: () => performance.now() });
    this.#db = db;
    this.#build = build;
    this.#log = log;
    this.#maxChars = maxChars;
    this.#left = maxChars;
    this.#timer = setInterval(() => {
      this.#writing = this.#writing.then(() => this.#write());
    }, FLUSH_MS).unref();
  }

  /** `isCut`: the rest of the line was left out. */
  add(level: LogLevel, message: string, isCut = false): void {
    if (this.#left > 0) this.#queue.add({ at: new Date(), level, message }, isCut);
  }

  /** With a last line, which no limit drops. Waits for the database for a while. Never rejects. */
  async end(level: LogLevel, message: string): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    const attempts = { left: END_ATTEMPTS };
    await this.#drain(attempts);
    if (this.#batch.length > 0) return;
    this.#batch = [{ at: this.#queue.timeOf(new Date()), level, message }];
    await this.#drain(attempts);
  }

  async #drain(attempts: { left: number }): Promise<void> {
    while (attempts.left > 0 && (this.#batch.length > 0 || this.#queue.size > 0)) {
      if (await this.#write()) continue;
      attempts.left -= 1;
      await delay(END_PAUSE_MS);
    }
  }

  /** False: the database has not taken the lines. Never rejects. */
  async #write(): Promise<boolean> {
    if (this.#batch.length === 0) this.#batch = this.#limit(this.#queue.take(BATCH_LINES));
    if (this.#batch.length === 0) return true;
    try {
      const lines = this.#batch.map((line) => ({ ...line, ...this.#build, kind: 'build' as const }));
      await appendLogs(this.#db, lines, this.#clock);
      this.#batch = [];
      return true;
    } catch (error) {
      this.#log.warn(
        { ...describeBug(error), lines: this.#batch.length },
        'lines of a build wait to be stored',
      );
      return false;
    }
  }

  #limit(lines: readonly LogLine[]): readonly LogLine[] {
    const kept: LogLine[] = [];
    for (const line of lines) {
      if (this.#left <= 0) break;
      this.#left -= line.message.length;
      kept.push(line);
      if (this.#left > 0) continue;
      const message = `the log of a build has at most ${Math.round(this.#maxChars / 1024)} KiB: the rest is dropped`;
      kept.push({ at: new Date(), level: 'WARNING', message });
    }
    return kept;
  }
}
