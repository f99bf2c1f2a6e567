// One attempt of a run: its lease is renewed as long as it works, and its end is stored. It stops when its time is over, when the lease is
// lost, which a cancellation does too, when the worker is closed, and when a workspace waits for its place.
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../../base/domain-error.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import type { Store } from '../../store/database.ts';
import type { AttemptEnd, RunStatus } from '../exports/export-states.ts';
import { ExportFailure } from '../files/export-failure.ts';
import type { ExportMeans, RunExportEnd, RunExportTask } from '../files/export-task.ts';
import type { RunProgress } from '../files/run-progress.ts';
import type { Clock } from '../scheduling/clock.ts';
import { RUN_TIMED_OUT } from '../scheduling/export-upkeep.ts';
import { type ClaimedRun, LEASE_MS } from '../scheduling/run-claims.ts';
import { endAttempt, type RetryRules } from '../scheduling/run-ending.ts';
import { createCheckpoints, LeaseLost, renewLease } from '../scheduling/run-lease.ts';

export type ExportRun = (task: RunExportTask, means: ExportMeans) => Promise<RunExportEnd>;

export type AttemptParts = {
  /** Of connections whose statements may take minutes, and of those whose statements may not. */
  readonly pages: Store;
  readonly store: Store;
  readonly traces: ExportMeans['traces'];
  readonly clock: Clock;
  readonly rules: RetryRules & { readonly runTimeoutMs: number };
  readonly log: Log;
  /** Opens the credentials. Throws ExportFailure. */
  createTask(claimed: ClaimedRun): Promise<RunExportTask>;
  readonly exportRun: ExportRun;
  onEnded(ended: EndedAttempt): void;
};

export type EndedAttempt = {
  /** `lost`: it was cancelled, or another worker has it. */
  readonly outcome: 'completed' | 'retried' | 'requeued' | 'failed' | 'lost';
  readonly seconds: number;
  /** That this attempt has added. */
  readonly rows: number;
  readonly files: number;
  readonly bytes: number;
};

export type RunningAttempt = {
  readonly claimed: ClaimedRun;
  /** By a clock that is never set. */
  readonly beganMs: number;
  readonly isPreempted: boolean;
  /** Rows that are read. */
  readonly rows: number;
  /** Asks whether its lease is held, soon. */
  check(): void;
  /** `stopped`: the run is requeued. */
  stop(): void;
  /** It ends with the rows that it writes, or after `graceMs` without them, and the run is requeued. */
  preempt(graceMs: number): void;
  /** Never rejects. */
  readonly ended: Promise<void>;
};

const RENEWAL_MS = 4_000;
/** Before another worker may have it: what the export needs to stop. */
const RESERVE_MS = 10_000;
const RETRY_MS = 500;

const UNKNOWN = 'The run failed for a reason that the log of the platform says';

type StopReason = 'lost' | 'stopped' | 'timeout' | 'preempted';

export function startAttempt(claimed: ClaimedRun, parts: AttemptParts): RunningAttempt {
  const attempt = new Attempt(claimed, parts);
  return attempt;
}

class Attempt implements RunningAttempt {
  readonly claimed: ClaimedRun;
  readonly ended: Promise<void>;
  readonly beganMs = performance.now();
  rows = 0;
  isPreempted = false;
  readonly #parts: AttemptParts;
  readonly #aborting = new AbortController();
  readonly #settled = new AbortController();
  #why: StopReason | undefined;
  #grace: NodeJS.Timeout | undefined;
  #wake = Promise.withResolvers<void>();
  /** By the clock of this process, which began to count before that of the database did. */
  #heldUntil: number;

  constructor(claimed: ClaimedRun, parts: AttemptParts) {
    this.claimed = claimed;
    this.#parts = parts;
    // The claim has just been committed; its transaction is short.
    this.#heldUntil = performance.now() + LEASE_MS - RESERVE_MS;
    this.ended = this.#run();
  }

  check(): void {
    this.#wake.resolve();
  }

  stop(): void {
    this.#abort('stopped');
  }

  preempt(graceMs: number): void {
    if (this.isPreempted) return;
    this.isPreempted = true;
    this.#grace = setTimeout(() => this.#abort('preempted'), graceMs);
  }

  #abort(why: StopReason): void {
    if (this.#aborting.signal.aborted) return;
    this.#why = why;
    this.#aborting.abort(new Error(`the attempt has to end: ${why}`));
  }

  async #run(): Promise<void> {
    const { log } = this.#parts;
    const timer = setTimeout(() => this.#abort('timeout'), this.#parts.rules.runTimeoutMs);
    const renewing = this.#keepLease();
    const added = { rows: 0, files: 0, bytes: 0 };
    try {
      const end = await this.#attempt(added);
      const seconds = (performance.now() - this.beganMs) / 1000;
      const outcome = end === undefined ? 'lost' : outcomeOf(end, await this.#store(end));
      this.#say(outcome, { end, seconds, added });
      this.#parts.onEnded({ outcome, seconds, ...added });
    } catch (error) {
      log.error({ ...describeBug(error), ...this.#names() }, 'the end of a run of an export was not stored');
    } finally {
      clearTimeout(timer);
      clearTimeout(this.#grace);
      this.#settled.abort();
      this.#wake.resolve();
      await renewing;
    }
  }

  /** Undefined: the lease is lost, and the end is not ours to store. */
  async #attempt(added: { rows: number; files: number; bytes: number }): Promise<AttemptEnd | undefined> {
    const { signal } = this.#aborting;
    try {
      const { pages, store, traces, exportRun, createTask } = this.#parts;
      const task = await createTask(this.claimed);
      const end = await exportRun(task, {
        ...{ traces, db: pages.db, cancelBy: store.db, signal, checkpoints: this.#checkpoints(added) },
        onProgress: ({ rows }) => void (this.rows = rows),
        isPreempted: () => this.isPreempted,
      });
      return { is: end };
    } catch (error) {
      if (error instanceof LeaseLost || this.#why === 'lost') return undefined;
      return this.#toEnd(error);
    }
  }

  #checkpoints(added: { rows: number; files: number; bytes: number }) {
    const checkpoints = createCheckpoints(this.#parts.store, this.claimed, this.#parts.clock);
    let before: RunProgress | undefined;
    const load = async (): Promise<RunProgress> => (before ??= await checkpoints.load());
    return {
      ...checkpoints,
      async commitFile(progress: RunProgress) {
        const { rows, files } = before ?? progress;
        await checkpoints.commitFile(progress);
        added.rows += progress.rows - rows;
        for (const file of progress.files.slice(files.length)) {
          added.files += 1;
          added.bytes += file.bytes;
        }
        before = progress;
      },
      load,
    };
  }

  #toEnd(error: unknown): AttemptEnd {
    if (this.#why === 'stopped') return { is: 'interrupted' };
    if (this.#why === 'preempted') return { is: 'preempted' };
    if (this.#why === 'timeout') return { is: 'failed', isRetryable: true, message: RUN_TIMED_OUT };
    if (error instanceof ExportFailure)
      return { is: 'failed', isRetryable: error.isRetryable, message: error.message };
    if (error instanceof DomainError && error.kind === 'unavailable')
      return { is: 'interrupted', waits: true };
    this.#parts.log.error({ ...describeBug(error), ...this.#names() }, 'a run of an export failed');
    return {
      is: 'failed',
      isRetryable: true,
      message: error instanceof DomainError ? error.message : UNKNOWN,
    };
  }

  /** Again while the database is away and the lease may be held; what is not stored is found by its lease. */
  async #store(end: AttemptEnd): Promise<RunStatus | undefined> {
    const { store, clock, rules } = this.#parts;
    for (;;)
      try {
        const ended = await store.write(async (trx) =>
          endAttempt(trx, { ...this.claimed, now: await clock(trx), rules }, end),
        );
        return ended?.status;
      } catch (error) {
        if (performance.now() + RETRY_MS > this.#heldUntil) throw error;
        await delay(RETRY_MS);
      }
  }

  async #keepLease(): Promise<void> {
    const { signal } = this.#settled;
    while (!signal.aborted) {
      const timer = setTimeout(() => this.#wake.resolve(), RENEWAL_MS);
      await this.#wake.promise;
      clearTimeout(timer);
      this.#wake = Promise.withResolvers();
      if (!signal.aborted) await this.#renew();
    }
  }

  async #renew(): Promise<void> {
    const { store, clock } = this.#parts;
    const sentAt = performance.now();
    try {
      const lease = { ...this.claimed, rows: this.rows };
      if (await renewLease(store.db, lease, clock)) this.#heldUntil = sentAt + LEASE_MS - RESERVE_MS;
      else if (!this.#settled.signal.aborted) this.#abort('lost');
    } catch {
      // The database is away: another attempt follows, until the lease may be another's.
      if (performance.now() > this.#heldUntil) this.#abort('lost');
    }
  }

  #names() {
    const { workspaceId, exportId, destinationId, runId, retryNumber } = this.claimed;
    return {
      ...{ workspace: workspaceId, export: exportId, destination: destinationId },
      ...{ run: runId, retry: retryNumber },
    };
  }

  #say(
    outcome: EndedAttempt['outcome'],
    {
      end,
      seconds,
      added,
    }: { readonly end: AttemptEnd | undefined; readonly seconds: number; readonly added: object },
  ): void {
    const { log } = this.#parts;
    const day = this.claimed.window.from.slice(0, 10);
    const fields = { ...this.#names(), day, outcome, seconds: Number(seconds.toFixed(3)), ...added };
    if (end?.is === 'failed')
      log.warn({ ...fields, reason: end.message }, 'an attempt of an export run failed');
    else log.info(fields, 'an attempt of an export run ended');
  }
}

function outcomeOf(end: AttemptEnd, status: RunStatus | undefined): EndedAttempt['outcome'] {
  if (status === undefined) return 'lost';
  if (status === 'COMPLETED') return 'completed';
  if (status === 'FAILED') return 'failed';
  return end.is === 'failed' ? 'retried' : 'requeued';
}
