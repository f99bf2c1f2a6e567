// The reconciler of one machine: compares the rows of its boxes with what the runtime reports, and takes one step for each box that
// differs. Woken by notifications, by the routes of this process and by the runtime, and after some seconds in any case.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describeBug, type Log } from '../../base/log.ts';
import type { Runtime } from '../runtime/contract.ts';
import type { Store } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import type { BoxSecrets } from './box-secrets.ts';
import { type BoxState, decideStep, type Step } from './box-states.ts';
import type { BoxRow } from './boxes.ts';
import { type Lease, releaseLease, RENEWAL_MS, renewLease } from './machine.ts';
import { handleRejection, type StepParts, takeStep, within } from './reconciliation.ts';

export type ReconcilerOptions = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly runtime: Runtime;
  readonly secrets: BoxSecrets;
  readonly log: Log;
  readonly machineId: string;
  /** Names this process in its lease; made up when absent. */
  readonly holder?: string;
  /** Steps at a time. */
  readonly concurrency?: number;
  readonly callMs?: number;
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
  readonly #parts: StepParts;
  readonly #lease: Lease;
  readonly #concurrency: number;
  /** The boxes with a step in progress. */
  readonly #steps = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();
  readonly #losses = new Map<string, readonly number[]>();
  #isWoken = false;
  /** A step waits for the end of another one. */
  #isFull = false;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  /** So that a runtime or a database that is away is one line in the log. */
  #isFailing = false;

  constructor({
    machineId,
    holder = randomUUID(),
    concurrency = CONCURRENCY,
    callMs = CALL_MS,
    ...parts
  }: ReconcilerOptions) {
    this.#parts = { ...parts, callMs };
    this.#lease = { machineId, holder };
    this.#concurrency = concurrency;
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
    await Promise.race([Promise.all(this.#steps.values()), delay(CLOSING_MS, undefined, { ref: false })]);
    await releaseLease(this.#parts.store.db, this.#lease).catch(() => undefined);
  }

  async #pass(): Promise<void> {
    this.#isWoken = false;
    if (this.#closing.signal.aborted) return;
    try {
      if (await renewLease(this.#parts.store.db, this.#lease)) await this.#compare();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing)
        this.#parts.log.warn(describeBug(error), 'the sandboxes of this machine could not be reconciled');
      this.#isFailing = true;
    }
    if (this.#isWoken || this.#closing.signal.aborted) return;
    // Also renews the lease. Unlike a box that is woken for, a machine without one costs a statement.
    this.#timer = setTimeout(() => this.wake(), RENEWAL_MS);
    this.#timer.unref();
  }

  async #compare(): Promise<void> {
    const { store, runtime } = this.#parts;
    // A step that is in progress now may be older than the report, or newer.
    const busy = new Set(this.#steps.keys());
    // Before the rows: a box that is reported had its row before it was started.
    const reports = new Map((await within(runtime.list(), LIST_MS)).map((report) => [report.id, report]));
    await this.#claim();
    const rows = await this.#rows();
    const known = new Set(rows.map(({ id }) => id));
    const unknown = [...reports.keys()].filter((id) => !known.has(id) && !busy.has(id));
    for (const row of rows) {
      if (busy.has(row.id)) continue;
      const step = decideStep(toBoxState(row), reports.get(row.id));
      if (step !== undefined) this.#begin(row.id, () => this.#take(row, step));
    }
    for (const id of this.#losses.keys()) if (!known.has(id)) this.#losses.delete(id);
    if (unknown.length === 0) return;
    // Of another machine of the same database, in case two have one runtime: a row says so.
    const elsewhere = await store.db.selectFrom('boxes').select('id').where('id', 'in', unknown).execute();
    const kept = new Set(elsewhere.map(({ id }) => id));
    for (const id of unknown) if (!kept.has(id)) this.#begin(id, () => this.#discard(id));
  }

  /** Boxes that no machine has. Several machines may try. */
  async #claim(): Promise<void> {
    await sql`
      update boxes set machine_id = ${this.#lease.machineId}
      where id in (select id from boxes where machine_id is null for update skip locked)`.execute(
      this.#parts.store.db,
    );
  }

  async #rows(): Promise<readonly DecidedRow[]> {
    const { db } = this.#parts.store;
    return db.selectFrom('boxes').select(DECIDED).where('machine_id', '=', this.#lease.machineId).execute();
  }

  /** The whole row; undefined where it is no longer what the step was decided for. */
  async #read({ id, status, desired, policy_version, token_version }: DecidedRow) {
    return this.#parts.store.db
      .selectFrom('boxes')
      .selectAll()
      .where('id', '=', id)
      .where('machine_id', '=', this.#lease.machineId)
      .where('status', '=', status)
      .where('desired', '=', desired)
      .where('policy_version', '=', policy_version)
      .where('token_version', '=', token_version)
      .executeTakeFirst();
  }

  /** Above the limit the box waits for the next pass, which the end of a step wakes. */
  #begin(id: string, work: () => Promise<boolean>): void {
    if (this.#steps.has(id)) return;
    if (this.#steps.size >= this.#concurrency) return void (this.#isFull = true);
    const step = work().then((isOpen) => {
      this.#steps.delete(id);
      if (!isOpen && !this.#isFull) return;
      this.#isFull = false;
      this.wake();
    });
    this.#steps.set(id, step);
  }

  /** Never rejects. */
  async #take(row: DecidedRow, decided: Step): Promise<boolean> {
    try {
      const box = await this.#read(row);
      if (box === undefined) return true;
      const step = this.#limit(row, decided);
      return await takeStep(this.#parts, box, step).catch((error: unknown) =>
        handleRejection(this.#parts, box, step, error),
      );
    } catch (failure) {
      this.#parts.log.warn(
        { ...describeBug(failure), box: row.id },
        'the state of a sandbox could not be read or stored',
      );
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
    const { runtime, callMs } = this.#parts;
    try {
      await within(runtime.remove(id), callMs);
      this.#parts.log.warn({ box: id }, 'a sandbox without a row was removed');
    } catch (error) {
      this.#parts.log.warn(
        { ...describeBug(error), box: id },
        'a sandbox without a row could not be removed',
      );
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

/** What a decision depends on. Without what is sealed: a box may have a megabyte of it, and every pass reads all boxes. */
const DECIDED = [
  ...(['id', 'status', 'desired', 'policy_version', 'applied_version'] as const),
  ...(['token_version', 'applied_token_version'] as const),
] as const;
type DecidedRow = Pick<BoxRow, (typeof DECIDED)[number]>;

function toBoxState(row: DecidedRow): BoxState {
  return {
    ...{ status: row.status, desired: row.desired },
    policyVersion: row.policy_version,
    appliedVersion: row.applied_version,
    hasToken: row.applied_token_version >= row.token_version,
  };
}
