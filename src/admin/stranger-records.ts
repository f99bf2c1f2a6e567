// Records of callers without the token: the first ones in a second are kept, the others counted and told in one. Whoever
// shares this loopback could fill the log otherwise, and a log that nobody can write to any more stops the proxy.
import { describeBug, type Log } from '../base/log.ts';
import type { RateLimit } from './rate-limit.ts';
import type { AdminRecord } from './record.ts';

const REPORT_MS = 1000;

export type UnauthenticatedRecordsOptions = {
  readonly rate: RateLimit;
  readonly log: Log;
  record(entry: AdminRecord): void;
  isRecordBlocked(): boolean;
};

export class UnauthenticatedRecords {
  readonly #options: UnauthenticatedRecordsOptions;
  /** The latest of those that were counted. */
  #last: AdminRecord | undefined;
  #count = 0;
  #suppressed = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: UnauthenticatedRecordsOptions) {
    this.#options = options;
  }

  add(entry: AdminRecord): void {
    const { rate, isRecordBlocked, record } = this.#options;
    const isBlocked = isRecordBlocked();
    if (!isBlocked && rate.take() === 0) return record(entry);
    this.#last = entry;
    this.#count += 1;
    if (isBlocked) this.#suppressed += 1;
    this.#wait();
  }

  /** Tells what is counted, whether or not it can be written: nobody will ask again. */
  settle(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#report();
  }

  #wait(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      if (this.#options.isRecordBlocked()) return this.#wait();
      try {
        this.#report();
      } catch (error) {
        this.#options.log.error(describeBug(error), 'admin record failed');
      }
    }, REPORT_MS).unref();
  }

  #report(): void {
    const last = this.#last;
    if (last === undefined) return;
    const counts = { count: this.#count, ...(this.#suppressed > 0 && { suppressed: this.#suppressed }) };
    this.#last = undefined;
    this.#count = 0;
    this.#suppressed = 0;
    this.#options.record({ ...last, ...counts });
  }
}
