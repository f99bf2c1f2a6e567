// The records of the admin API: one of each write, each rejected one and each wrong token; allow-listed fields, never a
// value. Those of callers without the token are limited: a process that shares this loopback could fill the log otherwise,
// and a log that can no longer be written to stops the proxy.
import type { RateLimit } from '../base/rate-limit.ts';
import { describeBug, type Log } from '../base/log.ts';
import type { AdminResponse } from './admin-errors.ts';

/** A member that is undefined is left out of the log. */
export type AdminRecord = Readonly<ReturnType<typeof toAdminRecord>> & {
  /** How many rejected requests without the token this record stands for; it describes the latest of them. */
  readonly count?: number;
  /** How many of these came while records could not be written. */
  readonly suppressed?: number;
};

/** What is known of a request before it has a response. */
export type RecordStart = {
  readonly action: string;
  readonly sandbox: string | undefined;
  readonly client: string | undefined;
  readonly requestId: string;
  readonly startedMs: number;
};

export function toAdminRecord(start: RecordStart, response: AdminResponse, endedMs: number) {
  const { action, client, requestId: request, startedMs } = start;
  const { sandbox = start.sandbox, status, reason, revision } = response;
  const outcome = outcomeOf(status);
  const duration_ms = Math.round((endedMs - startedMs) * 1000) / 1000;
  return { action, sandbox, status, outcome, reason, revision, client, request, duration_ms };
}

/** 408 and 499 are requests that never arrived whole, 500 is an error of ours: nothing was decided. */
const FAILED: readonly number[] = [408, 499, 500];

function outcomeOf(status: number): 'done' | 'refused' | 'failed' {
  if (status < 400) return 'done';
  return FAILED.includes(status) ? 'failed' : 'refused';
}

export type UnauthenticatedRecordsOptions = {
  readonly rate: RateLimit;
  readonly log: Log;
  record(entry: AdminRecord): void;
  isRecordBlocked(): boolean;
};

const REPORT_MS = 1000;

/** Writes the first records of a second and counts the others; one record then reports how many there were. */
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

  /** Reports what was counted, whether or not it can be written: there is no later opportunity. */
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
