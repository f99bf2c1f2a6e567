// The reconciler of one machine: compares the rows of its boxes with what the runtime reports, and takes one step for each box that
// differs. Woken by notifications, by the routes of this process and by the runtime, and after some seconds in any case.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../../base/log.ts';
import type { Runtime } from '../../runtime/contract.ts';
import { createFailureNotes, type FailureNotes } from '../../runtime/failure-notes.ts';
import type { Store } from '../../store/database.ts';
import type { PolicyParts } from '../box-policy.ts';
import type { BoxSecrets } from '../box-secrets.ts';
import { decideStep, type Step } from '../box-states.ts';
import { claimBoxes } from './claims.ts';
import { type DecidedRow, readDecided, readUnchanged, toBoxState } from './decided-rows.ts';
import { createLease, LeaseLost, type MachineLease } from './lease.ts';
import { RENEWAL_MS } from './machine.ts';
import { createPace, type Pace } from './pace.ts';
import { createStepQueue, type StepQueue } from './step-queue.ts';
import { call, handleRejection, type StepParts, takeStep, within } from './steps.ts';

export type ReconcilerOptions = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly runtime: Runtime;
  readonly secrets: BoxSecrets;
  /** Of documents that are made anew. */
  readonly policies: PolicyParts;
  readonly log: Log;
  readonly machineId: string;
  /** Names this process in its lease; made up when absent. */
  readonly holder?: string;
  /** Steps at a time, without those that take long. */
  readonly concurrency?: number;
  readonly callMs?: number;
  readonly pace?: Pace;
};

export type Reconciler = {
  /** Looks at the boxes as soon as it can. */
  wake(): void;
  /** Resolves after a pass that began after this call. */
  pass(): Promise<void>;
  /** Waits for running steps; boxes go on. */
  close(): Promise<void>;
};

const CALL_MS = 60_000;
/** Of a report: without it nothing is decided. */
const LIST_MS = 10_000;
const CONCURRENCY = 16;
const CLOSING_MS = 5_000;
/** So often in this time a box may be started again. */
const MAX_LOSSES = 5;
const LOSSES_MS = 60_000;

export function startReconciler(options: ReconcilerOptions): Reconciler {
  const reconciler = new MachineReconciler(options);
  reconciler.start();
  return reconciler;
}

class MachineReconciler implements Reconciler {
  readonly #parts: StepParts & { readonly lease: MachineLease };
  readonly #machineId: string;
  readonly #steps: StepQueue;
  readonly #closing = new AbortController();
  readonly #pace: Pace;
  readonly #losses = new Map<string, readonly number[]>();
  #isWoken = false;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  readonly #failures: FailureNotes;

  constructor({
    machineId,
    holder = randomUUID(),
    concurrency = CONCURRENCY,
    callMs = CALL_MS,
    pace = createPace(),
    ...parts
  }: ReconcilerOptions) {
    this.#parts = { ...parts, callMs, lease: createLease(parts.store.db, { machineId, holder }) };
    this.#machineId = machineId;
    this.#pace = pace;
    this.#steps = createStepQueue({ concurrency, onOpen: () => this.wake() });
    this.#failures = createFailureNotes(parts.log);
  }

  start(): void {
    void this.#followRuntime();
    this.wake();
  }

  wake(): void {
    if (this.#isWoken || this.#closing.signal.aborted) return;
    this.#isWoken = true;
    clearTimeout(this.#timer);
    this.#running = this.#running.then(() => this.#pass());
  }

  async pass(): Promise<void> {
    await this.#running;
    this.wake();
    await this.#running;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    await this.#running;
    // A call that hangs is not waited for: whoever follows continues what it has done.
    await Promise.race([this.#steps.close(), delay(CLOSING_MS, undefined, { ref: false })]);
    await this.#parts.lease.release().catch(() => undefined);
  }

  async #pass(): Promise<void> {
    const { signal } = this.#closing;
    const pauseMs = this.#pace.pauseMs();
    if (pauseMs > 0) await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    this.#isWoken = false;
    if (signal.aborted) return;
    const startedAt = performance.now();
    try {
      if (await this.#parts.lease.renew()) await this.#compare();
      this.#failures.succeeded(RECONCILING);
    } catch (error) {
      if (!(error instanceof LeaseLost)) this.#failures.failed(RECONCILING, error);
    }
    this.#pace.spend(performance.now() - startedAt);
    if (this.#isWoken || signal.aborted) return;
    // Also renews the lease. Unlike a box that is woken for, a machine without one costs a statement.
    this.#timer = setTimeout(() => this.wake(), RENEWAL_MS);
    this.#timer.unref();
  }

  async #compare(): Promise<void> {
    const { store, runtime, lease } = this.#parts;
    // A step that is in progress may be older than the report, or newer; and none begins until the report was read.
    const busy = this.#steps.clear();
    // Before the rows: a box that is reported had its row before it was started.
    const listed = await lease.keep(within(runtime.list(), LIST_MS));
    const reports = new Map(listed.map((report) => [report.id, report]));
    await claimBoxes(this.#parts, this.#machineId);
    const rows = await readDecided(store.db, this.#machineId);
    const known = new Set(rows.map(({ id }) => id));
    const unknown = await this.#findStray([...reports.keys()].filter((id) => !known.has(id)));
    lease.require();
    this.#steps.replace([
      ...rows.flatMap((row) => {
        const step = busy.has(row.id) ? undefined : decideStep(toBoxState(row), reports.get(row.id));
        return step === undefined ? [] : { id: row.id, work: () => this.#take(row, step) };
      }),
      ...unknown.filter((id) => !busy.has(id)).map((id) => ({ id, work: () => this.#discard(id) })),
    ]);
    for (const id of this.#losses.keys()) if (!known.has(id)) this.#losses.delete(id);
  }

  /** Without those of another machine of the same database, in case two have one runtime: a row says so. */
  async #findStray(unknown: readonly string[]): Promise<readonly string[]> {
    if (unknown.length === 0) return [];
    const { db } = this.#parts.store;
    const elsewhere = await db.selectFrom('boxes').select('id').where('id', 'in', unknown).execute();
    const kept = new Set(elsewhere.map(({ id }) => id));
    return unknown.filter((id) => !kept.has(id));
  }

  /** Never rejects. */
  async #take(row: DecidedRow, decided: Step): Promise<boolean> {
    try {
      const box = await readUnchanged(this.#parts.store.db, this.#machineId, row);
      if (box === undefined) return true;
      const step = this.#limit(row, decided);
      const isOpen = await takeStep(this.#parts, box, step).catch((error: unknown) =>
        handleRejection(this.#parts, box, step, error),
      );
      this.#failures.succeeded(STORING, row.id);
      return isOpen;
    } catch (failure) {
      if (!(failure instanceof LeaseLost)) this.#failures.failed(STORING, failure, row.id);
      return false;
    }
  }

  /** What ends again and again is not started for ever. Called when the step begins: a box that waits for others is lost once. */
  #limit({ id }: DecidedRow, step: Step): Step {
    if (step.kind !== 'lost') return step;
    const now = performance.now();
    const recent = (this.#losses.get(id) ?? []).filter((at) => at > now - LOSSES_MS);
    this.#losses.set(id, [...recent, now]);
    return recent.length < MAX_LOSSES ? step : { kind: 'fail', message: 'It ended again and again' };
  }

  /** A box that nobody knows: its row was deleted with its workspace, or with a database that was restored. */
  async #discard(id: string): Promise<boolean> {
    try {
      await call(this.#parts, (runtime) => runtime.remove(id));
      this.#parts.log.warn({ box: id }, 'a sandbox without a row was removed');
      this.#failures.succeeded(DISCARDING, id);
    } catch (error) {
      if (!(error instanceof LeaseLost)) this.#failures.failed(DISCARDING, error, id);
    }
    return false;
  }

  async #followRuntime(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        for await (const _ of this.#parts.runtime.changes(signal)) this.wake();
        return;
      } catch {
        // The next pass finds out what is wrong; until then there are the passes of the timer.
        await delay(RENEWAL_MS, undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
  }
}

const RECONCILING = 'the sandboxes of this machine could not be reconciled';
const STORING = 'the state of a sandbox could not be read or stored';
const DISCARDING = 'a sandbox without a row could not be removed';
