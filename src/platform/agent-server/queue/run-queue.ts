// The queue of runs in this process: it claims pending runs of the database, executes them by workers, and gives them back
// when the process drains. Several processes share one database, and any of them may execute any run.
import { describeBug } from '../../../base/log.ts';
import type { Cancellation } from '../runs/run-rows.ts';
import type { RunNotice, RunNotices } from '../streams/run-notices.ts';
import type { Backlog } from './backlog.ts';
import { type Claim, claimLoneRuns, claimRun, claimRuns, RENEWAL_MS } from './claims.ts';
import { type Concluded, type Conclusion, executeRun } from './conclusion.ts';
import type { KnownStart } from './execution.ts';
import { LonePlaces } from './lone-places.ts';
import { waitAtMost } from './patience.ts';
import { RecentCancellations } from './recent-cancellations.ts';
import { renewRuns } from './renewal.ts';
import { createReservedPlace, type OfferedRun, type ReservedPlace } from './reserved-place.ts';
import { RunControl } from './run-control.ts';
import { RunPlaces } from './run-places.ts';
import { createUpkeep, type Upkeep } from './upkeep.ts';

export type RunQueue = {
  /** For a run of this party that is about to be created. Undefined: there is none, and the run is offered when it is there. */
  reserve(party: string): ReservedPlace | undefined;
  /** After the commit that created it: it is claimed now if there is a place, and other processes learn of it if not. */
  offer(run: OfferedRun): void;
  /** After a commit that may have made runs claimable. */
  wake(): void;
  /** After the commit of a cancellation: the run ends at once where this process executes it; others learn it by NOTIFY. */
  cancel(runId: string, action: Cancellation): void;
  /** Claims nothing more. Those that run go on, and a later `drain` does not wait for them. */
  stop(): void;
  readonly isStopped: boolean;
  /** Runs that this process executes now. */
  readonly running: number;
  /** Claims nothing more, lets running ones end within the time to drain, and gives the others back, as pending. */
  drain(): Promise<void>;
  /** Gives back at once what still runs. */
  close(): Promise<void>;
};

export type RunQueueParts = Omit<Conclusion, 'pauseMs'> & {
  readonly notices: Pick<RunNotices, 'send' | 'subscribe'>;
  /** Runs at once. */
  readonly places: number;
  /** Of them, runs that are executed alone. */
  readonly lonePlaces: number;
  readonly backlog: Pick<Backlog, 'add' | 'count' | 'limit'>;
  readonly drainMs: number;
  /** An attempt of this process has come to this. */
  onAttempt?(concluded: Concluded): void;
  readonly renewalMs?: number;
  /** Between looks for runs that are due, or that another process has lost. */
  readonly upkeepMs?: number;
  /** At most, before a run whose worker was lost is executed again. */
  readonly pauseMs?: number;
};

const UPKEEP_MS = 2_000;
const PAUSE_MS = 1_000;
/** For what ends and gives back runs when the time to drain is over. */
const GIVING_BACK_MS = 15_000;

type Running = { readonly claim: Claim; readonly control: RunControl; readonly done: Promise<void> };

export function createRunQueue(parts: RunQueueParts): RunQueue {
  const queue = new ProcessQueue(parts);
  queue.start();
  return queue;
}

class ProcessQueue implements RunQueue {
  readonly #parts: RunQueueParts;
  readonly #execution: Conclusion;
  readonly #places: RunPlaces;
  readonly #lone: LonePlaces;
  readonly #running = new Map<string, Running>();
  readonly #cancelled = new RecentCancellations();
  readonly #upkeep: Upkeep;
  #renewal: NodeJS.Timeout | undefined;
  #unsubscribe: (() => void) | undefined;
  #isDraining = false;
  #isStopped = false;
  #isWanted = false;
  #claiming: Promise<void> | undefined;

  constructor(parts: RunQueueParts) {
    this.#parts = parts;
    const { pauseMs = PAUSE_MS } = parts;
    // Runs that were lost together may be lost because of one of them: they begin apart.
    this.#execution = { ...parts, pauseMs: (losses) => Math.random() * losses * pauseMs };
    this.#places = new RunPlaces(parts.places);
    this.#lone = new LonePlaces(parts.lonePlaces);
    const onDue = (hasLone: boolean): void => {
      if (hasLone) this.#lone.want();
      this.wake();
    };
    this.#upkeep = createUpkeep({ ...parts, everyMs: parts.upkeepMs ?? UPKEEP_MS, onDue });
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  get running(): number {
    return this.#running.size + this.#places.reserved;
  }

  start(): void {
    const { notices, renewalMs = RENEWAL_MS } = this.#parts;
    this.#unsubscribe = notices.subscribe({
      onNotice: (notice) => this.#take(notice),
      onMissed: () => {
        void this.#renew();
        this.wake();
      },
    });
    this.#renewal = setInterval(() => void this.#renew(), renewalMs).unref();
    this.#upkeep.start();
    this.wake();
  }

  offer({ runId, threadId, party, isDue }: OfferedRun): void {
    if (isDue && !this.#isDraining && this.#places.reserve(party))
      return void this.#claimOffered(runId, party);
    this.#parts.backlog.add();
    if (isDue) this.#parts.notices.send({ kind: 'new', threadId });
    else this.#upkeep.look();
  }

  reserve(party: string): ReservedPlace | undefined {
    // Where runs wait for a place, they come first.
    if (this.#isDraining || this.#isWanted || !this.#places.reserve(party)) return undefined;
    const watch = this.#cancelled.watch();
    return createReservedPlace({
      owner: this.#parts.owner,
      onStart: (claim, known) => {
        this.#start(claim, known);
        if (this.#cancelled.mayHave(claim.run_id, watch)) void this.#renew();
      },
      onRelease: () => {
        this.#cancelled.end(watch);
        this.#release(party);
      },
    });
  }

  #release(party: string): void {
    this.#places.release(party);
    if (this.#isWanted) this.wake();
  }

  /** Where another run of its thread runs, the end of that one has this one claimed. */
  async #claimOffered(runId: string, party: string): Promise<void> {
    const { store, owner, log, backlog } = this.#parts;
    try {
      const claimed = await claimRun(store.db, owner, runId);
      if (claimed === undefined) backlog.add();
      else this.#start(claimed);
    } catch (error) {
      log.warn({ ...describeBug(error), run: runId }, 'a run could not be claimed; it is claimed later');
    } finally {
      this.#release(party);
    }
  }

  wake(): void {
    this.#isWanted = true;
    this.#claiming ??= this.#claim().finally(() => {
      this.#claiming = undefined;
      if (this.#isWanted && this.#places.free > 0 && !this.#isDraining) this.wake();
    });
  }

  /** As long as there are places, and runs for them. */
  async #claim(): Promise<void> {
    const { store, owner, log } = this.#parts;
    while (this.#isWanted && !this.#isDraining && this.#places.free > 0) {
      this.#isWanted = false;
      try {
        await this.#claimLone();
        // Others may wait for a place.
        this.#isWanted ||= this.#places.free <= 0;
        if (this.#places.free <= 0) return;
        const batch = this.#places.batch();
        const claimed = await claimRuns(store.db, owner, batch);
        for (const one of claimed) this.#start(one);
        if (claimed.length === batch.places) this.#isWanted = true;
      } catch (error) {
        // The next look comes by itself.
        log.warn(describeBug(error), 'no runs could be claimed');
      }
    }
  }

  /** Before others: they have waited for their place. */
  async #claimLone(): Promise<void> {
    const { store, owner } = this.#parts;
    const places = this.#lone.ask(this.#places.free);
    if (places === 0) return;
    const claimed = await claimLoneRuns(store.db, owner, { places, lastParty: this.#lone.lastParty });
    for (const one of claimed) this.#start(one);
    if (claimed.length === places) this.#lone.want();
  }

  cancel(runId: string, action: Cancellation): void {
    this.#running.get(runId)?.control.end(action);
    this.#parts.notices.send({ kind: 'cancel', runId });
  }

  #take(notice: RunNotice): void {
    if (notice.kind === 'new') this.wake();
    else if (notice.kind === 'cancel' || notice.kind === 'ended') {
      if (this.#running.has(notice.runId)) void this.#renew();
      else if (notice.kind === 'cancel') this.#cancelled.add(notice.runId);
    }
  }

  #start(claim: Claim, known?: KnownStart): void {
    const control = new RunControl();
    // An attempt of this process whose lease had run out.
    this.#running.get(claim.run_id)?.control.end('lost');
    this.#places.take(claim.party);
    if (claim.is_alone) this.#lone.take(claim.party);
    const startedMs = performance.now();
    const execution = executeRun(this.#execution, { claim, control, known });
    const done = execution.then((concluded) => this.#finish(claim, concluded, performance.now() - startedMs));
    this.#running.set(claim.run_id, { claim, control, done });
    if (this.#isDraining) control.end('drained');
  }

  #finish(
    { run_id: runId, thread_id: threadId, party, attempt, is_alone: isAlone }: Claim,
    concluded: Concluded,
    ms: number,
  ): void {
    if (isAlone) this.#lone.leave();
    const { log, notices } = this.#parts;
    this.#parts.onAttempt?.(concluded);
    if (this.#running.get(runId)?.claim.attempt === attempt) this.#running.delete(runId);
    const isHeldUp = this.#places.isHeldUp(party);
    this.#places.leave(party);
    const status = concluded.kind === 'ended' ? concluded.status : concluded.kind;
    log.info({ run: runId, attempt, status, ms: Math.round(ms) }, 'an attempt of a run has ended');
    if (concluded.kind === 'ended') notices.send({ kind: 'ended', runId });
    // Of the thread of a run that has ended, the next one may start.
    if (this.#isDraining) notices.send({ kind: 'new', threadId });
    else if (concluded.kind === 'given_back') this.#upkeep.look();
    // What waits, waits for this place or for the end of this run.
    const isLast = concluded.kind === 'ended' && concluded.hasNext === false;
    if (!isLast || isHeldUp || this.#isWanted || this.#lone.isWanted) this.wake();
  }

  #renew(): Promise<void> {
    return renewRuns(this.#parts, [...this.#running.values()]);
  }

  stop(): void {
    this.#isDraining = true;
    this.#isStopped = true;
  }

  async drain(): Promise<void> {
    this.#isDraining = true;
    // Whoever has stopped it has waited as long as they wanted.
    if (this.#isStopped) return this.#giveBack();
    await waitAtMost(this.#parts.drainMs, this.#settled());
    await this.#giveBack();
  }

  async #giveBack(): Promise<void> {
    // What it still finds is given back too.
    await this.#claiming;
    for (const { control } of this.#running.values()) control.end('drained');
    await waitAtMost(GIVING_BACK_MS, this.#settled());
    for (const { control } of this.#running.values()) control.end('lost');
  }

  async #settled(): Promise<void> {
    await this.#claiming;
    while (this.#running.size + this.#places.reserved > 0) {
      await Promise.all([...this.#running.values()].map(({ done }) => done));
      if (this.#places.reserved > 0) await this.#places.settled();
    }
  }

  async close(): Promise<void> {
    this.#isDraining = true;
    await this.#giveBack();
    clearInterval(this.#renewal);
    this.#unsubscribe?.();
    await this.#upkeep.close();
  }
}
