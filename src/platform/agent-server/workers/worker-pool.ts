// The workers of this process: one at start, more when those that there are have work, each replaced when it ends. A call goes
// to the one with the least to do among those that respond. Beside them are those that were started for one run alone.
import type { Loaded } from '../../../agent-worker/protocol/messages.ts';
import type { Log } from '../../../base/log.ts';
import type { Deployment } from '../configuration/deployment.ts';
import { cancelReasonOf } from './graph-workers.ts';
import type { TurnBudget } from './turn-budget.ts';
import { Worker } from './worker.ts';
import { WorkerError } from './worker-error.ts';
import type { ExitReason } from './worker-exit.ts';
import type { WorkerLimits } from './worker-limits.ts';
import { startProcess } from './worker-process.ts';

export type WorkerMeters = {
  onWorkerStart(): void;
  onWorkerExit(reason: ExitReason): void;
};

export type PoolParts = {
  readonly deployment: Pick<Deployment, 'load' | 'env' | 'root'>;
  readonly limits: WorkerLimits;
  readonly log: Log;
  readonly meters?: WorkerMeters | undefined;
  /** The program of workers; that of this version when absent. */
  readonly program?: string;
};

/** One that lived so long has not ended because of its start. */
const LONG_MS = 10_000;

export class WorkerPool {
  readonly #parts: PoolParts;
  readonly #budget: TurnBudget;
  readonly #workers: Set<Worker> = new Set();
  readonly #alone: Set<Worker> = new Set();
  /** Those who wait for a worker that can take a call. */
  readonly #waiting: Set<() => void> = new Set();
  #hasStarted = false;
  /** Ends since one has lived for long. */
  #failures = 0;
  #restart: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(parts: PoolParts, budget: TurnBudget) {
    this.#parts = parts;
    this.#budget = budget;
  }

  /** The first worker. Rejects with a WorkerStartError. */
  async start(): Promise<Loaded> {
    return this.#add().ready;
  }

  /** Resolves with the least loaded worker. Rejects with a WorkerError when none can take a call in time. */
  async acquire(signal?: AbortSignal): Promise<Worker> {
    const deadlineMs = performance.now() + this.#parts.limits.waitMs;
    for (;;) {
      if (signal?.aborted === true)
        throw new WorkerError({ kind: 'cancelled', reason: cancelReasonOf(signal) });
      const worker = this.#choose();
      this.#grow(worker);
      if (worker !== undefined) return worker;
      const leftMs = deadlineMs - performance.now();
      if (this.#isClosed || leftMs <= 0) throw new WorkerError('unavailable');
      await this.#changed(leftMs, signal);
    }
  }

  /** Resolves with a worker that nobody else gets: whoever asks for it closes it. Rejects with a WorkerError. */
  async startAlone(signal: AbortSignal): Promise<Worker> {
    if (this.#isClosed) throw new WorkerError('unavailable');
    const worker = this.#create(() => undefined);
    this.#alone.add(worker);
    void worker.ended.then(() => this.#alone.delete(worker));
    const onAbort = (): void => worker.close();
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    try {
      await worker.ready;
      return worker;
    } catch (error) {
      if (signal.aborted) throw new WorkerError({ kind: 'cancelled', reason: cancelReasonOf(signal) });
      const why = error instanceof Error ? error.message : undefined;
      this.#parts.log.error({ why }, 'a worker for one run has not started');
      throw new WorkerError('unavailable');
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#restart);
    const workers = [...this.#workers, ...this.#alone];
    for (const worker of workers) worker.close();
    this.#wake();
    await Promise.all(workers.map(({ ended }) => ended));
  }

  #choose(): Worker | undefined {
    const all = [...this.#workers].filter((worker) => worker.isUsable);
    const fresh = all.filter((worker) => !worker.isWorn);
    const usable = fresh.length > 0 ? fresh : all;
    const prompt = usable.filter((worker) => !worker.isSilent);
    const [first, ...others] = prompt.length > 0 ? prompt : usable;
    return others.reduce((least, worker) => (least && worker.load < least.load ? worker : least), first);
  }

  /** Another one, where the least loaded has work: those that do not respond, or are to be replaced, do not count. */
  #grow(chosen: Worker | undefined): void {
    if (this.#isClosed || this.#restart !== undefined) return;
    const { workers } = this.#parts.limits;
    const all = [...this.#workers];
    const isStarting = all.some((worker) => !worker.isUsable && !worker.isBlocked);
    const useful = all.filter((worker) => !worker.isBlocked && !worker.isWorn).length;
    const isBusy = chosen === undefined || chosen.isWorn || chosen.load > 0;
    if (isBusy && !isStarting && useful < workers && all.length < 2 * workers) this.#add();
  }

  #add(): Worker {
    const onPulse = (): void => {
      // In place of the one that does not respond, or is to be replaced.
      const chosen = this.#choose();
      if (chosen === undefined || chosen.isWorn) this.#grow(chosen);
      this.#wake();
    };
    const worker = this.#create(onPulse);
    this.#workers.add(worker);
    void this.#watch(worker);
    return worker;
  }

  #create(onPulse: () => void): Worker {
    const { deployment, limits, log, program, meters } = this.#parts;
    const { root, env, load } = deployment;
    const file = program === undefined ? {} : { file: program };
    const process = startProcess({ ...file, root, env, heapMegabytes: limits.heapMegabytes }, log);
    meters?.onWorkerStart();
    const onExit = (reason: ExitReason): void => meters?.onWorkerExit(reason);
    return new Worker({ process, deployment: load, limits, budget: this.#budget, log, onPulse, onExit });
  }

  async #watch(worker: Worker): Promise<void> {
    let readyMs: number | undefined;
    try {
      await worker.ready;
      readyMs = performance.now();
      this.#hasStarted = true;
      this.#wake();
    } catch (error) {
      const why = error instanceof Error ? error.message : undefined;
      if (this.#hasStarted && !this.#isClosed) this.#parts.log.error({ why }, 'a worker has not started');
    }
    await worker.ended;
    this.#workers.delete(worker);
    const wasLong = readyMs !== undefined && performance.now() - readyMs > LONG_MS;
    this.#failures = wasLong ? 1 : this.#failures + 1;
    // The start of the server fails with the first one.
    if (this.#hasStarted) this.#replace();
  }

  /** At once, or after a while when several have ended without one that was ready for long. */
  #replace(): void {
    if (this.#isClosed || this.#restart !== undefined) return;
    const [first, longest] = this.#parts.limits.backoffMs;
    const delayMs = this.#failures <= 1 ? 0 : Math.min(longest, first * 2 ** (this.#failures - 2));
    this.#restart = setTimeout(() => {
      this.#restart = undefined;
      this.#add();
    }, delayMs);
  }

  async #changed(timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const limit = setTimeout(resolve, timeoutMs);
    this.#waiting.add(resolve);
    const onAbort = (): void => resolve();
    signal?.addEventListener('abort', onAbort);
    await promise;
    signal?.removeEventListener('abort', onAbort);
    this.#waiting.delete(resolve);
    clearTimeout(limit);
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
  }
}
