// Executes runs of exports: takes those that may begin, as many at once as it has places, and keeps the exports of all workspaces. It is
// woken by notifications and looks at the tables every few seconds, because a notification may be lost.
import { describeBug } from '../../../base/log.ts';
import type { Notifications } from '../../store/postgres/notifications.ts';
import { releaseCredentials } from '../scheduling/held-credentials.ts';
import { claimLeftUpload, type LeftUpload, settleLeftUpload } from '../scheduling/left-uploads.ts';
import { keepExports, type UpkeepRules } from '../scheduling/export-upkeep.ts';
import { claimRun } from '../scheduling/run-claims.ts';
import { type AdmissionLimits, hasWaitingWorkspace } from '../scheduling/waiting-workspaces.ts';
import { choosePreempted, heldFor } from './place-sharing.ts';
import { type AttemptParts, type RunningAttempt, startAttempt } from './run-attempt.ts';
import type { WorkerIdentity } from './worker-identity.ts';

export type WorkerParts = Omit<AttemptParts, 'rules'> & {
  readonly notifications: Pick<Notifications, 'subscribe'>;
  readonly limits: AdmissionLimits;
  readonly rules: UpkeepRules;
  /** Of a run that nobody tries again. */
  abandonUpload(left: LeftUpload): Promise<void>;
  /** Of this process; undefined where leases alone say that a worker has died. */
  readonly identity?: WorkerIdentity | undefined;
  /** Runs at once. */
  readonly places: number;
  readonly intervalMs?: number;
  /** For how long an attempt keeps its place although others wait, the first time, and for how long these wait at least. */
  readonly holdMs?: number;
  readonly waitMs?: number;
};

export type ExportWorker = {
  readonly running: number;
  /** Stops what runs, which another worker goes on with. Resolves once that is stored, and uploads are aborted. */
  close(): Promise<void>;
};

const INTERVAL_MS = 2_000;
const UPKEEP_MS = 5_000;
const HOLD_MS = 60_000;
/** Another worker may have a free place. */
const WAIT_MS = 5_000;

export async function openExportWorker(parts: WorkerParts): Promise<ExportWorker> {
  const worker = new Worker(parts);
  await worker.begin();
  return worker;
}

class Worker implements ExportWorker {
  readonly #parts: WorkerParts;
  readonly #attempts = new Map<string, RunningAttempt>();
  readonly #closing = new AbortController();
  #wake = Promise.withResolvers<void>();
  #unsubscribe: () => void = () => undefined;
  #loop: Promise<void> | undefined;
  #upkeptMs = Number.NEGATIVE_INFINITY;
  #isAway = false;
  /** Since when a workspace was seen to wait for a place. */
  #waitingMs: number | undefined;
  #cleaning: Promise<void> | undefined;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
  }

  get running(): number {
    return this.#attempts.size;
  }

  async begin(): Promise<void> {
    this.#loop = this.#run();
    this.#unsubscribe = await this.#parts.notifications.subscribe('exports', {
      onMessage: (workspaceId) => {
        for (const one of this.#attempts.values()) if (one.claimed.workspaceId === workspaceId) one.check();
        this.#wake.resolve();
      },
      onMissed: () => {
        for (const one of this.#attempts.values()) one.check();
        this.#wake.resolve();
      },
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#unsubscribe();
    this.#wake.resolve();
    await this.#loop;
    for (const one of this.#attempts.values()) one.stop();
    await Promise.all([this.#cleaning, ...[...this.#attempts.values()].map((one) => one.ended)]);
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const { intervalMs = INTERVAL_MS } = this.#parts;
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers();
      const timer = setTimeout(() => this.#wake.resolve(), intervalMs);
      await this.#pass();
      if (!signal.aborted) await this.#wake.promise;
      clearTimeout(timer);
    }
  }

  /** Never rejects. */
  async #pass(): Promise<void> {
    const { log } = this.#parts;
    try {
      await this.#keep();
      await this.#takeRuns();
      await this.#sharePlaces();
      if (this.#isAway) log.info('the exports can be read again');
      this.#isAway = false;
    } catch (error) {
      if (!this.#isAway) log.warn(describeBug(error), 'the exports cannot be read');
      this.#isAway = true;
    }
  }

  async #keep(): Promise<void> {
    const nowMs = performance.now();
    if (nowMs < this.#upkeptMs + UPKEEP_MS) return;
    this.#upkeptMs = nowMs;
    const { store, clock, rules, identity, log } = this.#parts;
    const isDead = identity && { isDead: (worker: string) => identity.isDead(worker) };
    const done = await keepExports({ store, clock, rules, log, ...isDead });
    if (Object.values(done).some((count) => count > 0))
      log.info(done, 'interrupted runs, expired exports and due schedules were handled');
    // Not waited for: a bucket may not respond.
    this.#cleaning ??= this.#abandonUploads().finally(() => (this.#cleaning = undefined));
  }

  /** Never rejects. */
  async #abandonUploads(): Promise<void> {
    const { store, clock, abandonUpload, log } = this.#parts;
    try {
      while (!this.#closing.signal.aborted) {
        const left = await claimLeftUpload(store, clock);
        if (left === undefined) return;
        const { workspaceId: workspace, exportId, runId } = left;
        try {
          await abandonUpload(left);
          await settleLeftUpload(store.db, runId);
          await releaseCredentials(store.db, left.destinationId);
        } catch (error) {
          const names = { workspace, export: exportId, run: runId };
          log.warn({ ...describeBug(error), ...names }, 'an upload that a run has left was not aborted');
        }
      }
    } catch (error) {
      log.warn(describeBug(error), 'uploads that runs have left cannot be read');
    }
  }

  /** A workspace without a run at work gets one of the places that others have had for long. */
  async #sharePlaces(): Promise<void> {
    const { store, clock, limits, places, log, holdMs = HOLD_MS, waitMs = WAIT_MS } = this.#parts;
    const held = [...this.#attempts.values()].map((attempt) => ({ ...toPlace(attempt), attempt }));
    const isBusy = held.length >= places && !held.some(({ attempt }) => attempt.isPreempted);
    const nowMs = performance.now();
    const chosen = isBusy ? choosePreempted(held, { nowMs, holdMs }) : undefined;
    const isAwaited = chosen !== undefined && (await hasWaitingWorkspace(store, { clock, limits }));
    this.#waitingMs = isAwaited ? (this.#waitingMs ?? nowMs) : undefined;
    if (chosen === undefined || this.#waitingMs === undefined || nowMs - this.#waitingMs < waitMs) return;
    const { workspaceId: workspace, exportId, runId } = chosen.attempt.claimed;
    log.info({ workspace, export: exportId, run: runId }, 'a run is requeued: another workspace waits');
    chosen.attempt.preempt(heldFor(chosen, holdMs) / 2);
  }

  async #takeRuns(): Promise<void> {
    const { store, clock, limits, places, identity } = this.#parts;
    while (!this.#closing.signal.aborted && this.#attempts.size < places) {
      const claimed = await claimRun(store, { clock, limits, worker: identity?.own });
      if (claimed === undefined) return;
      const attempt = startAttempt(claimed, this.#parts);
      this.#attempts.set(claimed.leaseId, attempt);
      void attempt.ended.then(() => {
        this.#attempts.delete(claimed.leaseId);
        this.#wake.resolve();
      });
    }
  }
}

function toPlace({ claimed: { workspaceId, interruptions }, beganMs }: RunningAttempt) {
  return { workspaceId, interruptions, beganMs };
}
