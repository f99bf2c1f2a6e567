// The audit events of rejected and failed requests, which are not part of a transaction. They are written in batches, by few
// connections, and never in the place of a write. Who fails too often gets sums instead of events: a flood of requests
// that are rejected must neither fill the log nor slow down the organization.
import { describeBug, type Log } from '../../../base/log.ts';
import { type AuditEntry, appendEvent } from '../../audit/journal.ts';
import { isDuplicate, type Store, type Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { Clock } from './clock.ts';
import { FailureSums } from './failure-sums.ts';
import { createRateLimit, type RateLimit } from './rate-limit.ts';

export type Failure = {
  readonly entry: AuditEntry;
  /** The event of its success, where the outcome of the commit is unknown: it may be stored all the same. */
  readonly pending?: string | undefined;
};

export type FailureEvents = {
  /**
   * Resolves when the event is stored, at the latest after two seconds, or at once where it is summed. Never rejects: the
   * response does not change.
   */
  record(failure: Failure): Promise<void>;
  /** Writes what is not stored yet. */
  settle(): Promise<void>;
};

/** Events of its own for so many failures at once, and for so many a second. */
export type FailureRates = Readonly<
  Record<'key' | 'organization', { readonly perSecond: number; readonly burst: number }>
>;

export const failureRates: FailureRates = {
  key: { perSecond: 1, burst: 300 },
  organization: { perSecond: 5, burst: 1_000 },
};
const MAX_NAMES = 20_000;
/** Transactions at a time, of different organizations. */
const MAX_WRITERS = 2;
/** A batch holds the chain of its organization for some milliseconds. */
const BATCH = 32;
const MAX_QUEUED = 1_000;
/** Of one organization: what it fails does not cost others their events. */
const MAX_QUEUED_OF_ONE = 250;
const RESPONSE_WAIT_MS = 2_000;
const SUM_INTERVAL_MS = 60_000;

type Queued = Failure & { done(): void };

type Writing = { readonly store: Store; readonly log: Log };

/** `store` is that of the writes, within a share of its own. */
export function createFailureEvents(
  writing: Writing,
  clock: Clock,
  rates: FailureRates = failureRates,
): FailureEvents {
  return new Recorder(writing, clock, rates);
}

class Recorder implements FailureEvents {
  readonly #store: Store;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #keys: RateLimit;
  readonly #organizations: RateLimit;
  readonly #queues = new Map<string, Queued[]>();
  readonly #writers = new Map<string, Promise<void>>();
  readonly #sums = new FailureSums();
  #queued = 0;
  #cancelFlush: (() => void) | undefined;
  #flushing: Promise<void> = Promise.resolve();

  constructor({ store, log }: Writing, clock: Clock, rates: FailureRates) {
    const table = { maxNames: MAX_NAMES, now: clock.now };
    this.#keys = createRateLimit({ ...rates.key, ...table });
    this.#organizations = createRateLimit({ ...rates.organization, ...table });
    [this.#store, this.#log, this.#clock] = [store, log, clock];
  }

  async record(failure: Failure): Promise<void> {
    if (failure.pending === undefined && this.#isTooMany(failure.entry)) return this.#sum(failure.entry);
    const { organizationId } = failure.entry;
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = this.#queues.get(organizationId) ?? [];
    this.#queues.set(organizationId, queue);
    queue.push({ ...failure, done: resolve });
    this.#queued += 1;
    this.#start();
    const cancel = this.#clock.after(RESPONSE_WAIT_MS, resolve);
    await promise;
    cancel();
  }

  async settle(): Promise<void> {
    while (this.#writers.size > 0) await Promise.all(this.#writers.values());
    await this.#flushing.then(() => this.#flush());
    this.#cancelFlush?.();
  }

  #isTooMany({ organizationId, keyId, session }: AuditEntry): boolean {
    const own = this.#queues.get(organizationId)?.length ?? 0;
    if (this.#queued >= MAX_QUEUED || own >= MAX_QUEUED_OF_ONE) return true;
    const key = keyId ?? session?.keyId ?? '';
    const waitMs = this.#keys.take(`${organizationId}/${key}`) || this.#organizations.take(organizationId);
    return waitMs > 0;
  }

  #start(): void {
    for (const [organization, queue] of this.#queues) {
      if (this.#writers.size >= MAX_WRITERS) return;
      if (this.#writers.has(organization)) continue;
      const batch = takeBatch(queue);
      this.#queued -= batch.length;
      // The next batch comes after those of the others.
      this.#queues.delete(organization);
      if (queue.length > 0) this.#queues.set(organization, queue);
      const writer = this.#write(batch).finally(() => {
        this.#writers.delete(organization);
        this.#start();
      });
      this.#writers.set(organization, writer);
    }
  }

  async #write(batch: readonly Queued[]): Promise<void> {
    try {
      await this.#store.write((trx) => appendAll(trx, batch));
    } catch (error) {
      if (error instanceof Succeeded) return;
      this.#log.warn(describeBug(error), 'events of failures could not be stored: they are stored as sums');
      for (const { entry, pending } of batch) {
        if (pending === undefined) this.#sum(entry);
        // It may have been a success.
        else this.#log.error({ request: entry.request?.id }, 'a failure is missing in the audit log');
      }
    } finally {
      for (const { done } of batch) done();
    }
  }

  #sum(entry: AuditEntry): void {
    this.#sums.add(entry);
    this.#cancelFlush ??= this.#clock.after(SUM_INTERVAL_MS, () => {
      this.#flushing = this.#flushing.then(() => this.#flush());
    });
  }

  async #flush(): Promise<void> {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    for (const entries of this.#sums.take()) {
      try {
        const failures = entries.map((entry) => ({ entry }));
        await this.#store.write((trx) => appendAll(trx, failures));
      } catch (error) {
        this.#log.warn(
          describeBug(error),
          'sums of failures could not be stored: the next attempt includes them',
        );
        for (const entry of entries) this.#sum(entry);
      }
    }
  }
}

/** One whose outcome is not known stands alone: it may turn out to be no failure. */
function takeBatch(queue: Queued[]): readonly Queued[] {
  const alone = queue.findIndex(({ pending }) => pending !== undefined);
  return queue.splice(0, alone === 0 ? 1 : Math.min(BATCH, alone === -1 ? BATCH : alone));
}

async function appendAll(trx: Transaction, failures: readonly Failure[]): Promise<void> {
  // A chain that is held for long must not keep the failures of other organizations waiting.
  await sql`set local lock_timeout = '1s'`.execute(trx);
  for (const { entry, pending } of failures) {
    try {
      // With the id of the event of the success, so that one of them is stored: the commit may still be on its way.
      await appendEvent(trx, entry, pending);
    } catch (error) {
      throw pending !== undefined && isDuplicate(error, 'audit_events_id') ? new Succeeded() : error;
    }
  }
}

/** Rolls back the event of a failure that was none. */
class Succeeded extends Error {}
