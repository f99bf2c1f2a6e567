// Writes the events of a run in the process that executes it: to readers here at once, and to the database first where
// somebody reads them elsewhere or may ask for them again.
import { setTimeout as pause } from 'node:timers/promises';
import type { WorkerEvent } from '../../../agent-worker/protocol/messages.ts';
import { DomainError } from '../../../base/domain-error.ts';
import type { Database } from '../../store/database.ts';
import { type KeptEvent, toKeptEvent } from './event-queue.ts';
import type { RunChannel } from './run-channel.ts';
import { type RunAttempt, storeEvents } from './stored-events.ts';

/** Another process has taken the run over, or it was deleted. */
export class LostRun extends Error {
  override readonly name: string = 'LostRun';
}

type Waiting = {
  readonly events: readonly KeptEvent[];
  /** Readers of this process have them. */
  readonly isPublished: boolean;
  readonly stored: PromiseWithResolvers<void>;
};

export type EventWriterParts = {
  readonly db: Database;
  readonly channel: RunChannel;
  readonly run: RunAttempt;
  readonly isStored: boolean;
  /** Events were stored that a process reads which does not execute the run. */
  onStored(): void;
};

/** Of events in one transaction. */
const BATCH_BYTES = 1024 * 1024;
const RETRY_MS = 250;
/** How long the database may be away: as long as a lease lasts. */
const MAX_AWAY_MS = 10_000;

export class EventWriter {
  readonly #parts: EventWriterParts;
  readonly #waiting: Waiting[] = [];
  #next: number;
  #isStored: boolean;
  #isWatched = false;
  #closed: Error | undefined;
  #flushing: Promise<void> | undefined;

  constructor(parts: EventWriterParts) {
    this.#parts = parts;
    this.#isStored = parts.isStored;
    this.#next = parts.channel.next ?? 0;
  }

  async write(events: readonly WorkerEvent[]): Promise<void> {
    if (this.#closed !== undefined) throw this.#closed;
    const kept = events.map((event) => toKeptEvent(event, this.#next++));
    const { channel } = this.#parts;
    if (this.#isStored) await this.#store(kept, false);
    else channel.publish(kept);
    await channel.paced();
  }

  /** A reader in another process has come: from now on everything is stored, with what nobody has read yet. */
  watch(): void {
    this.#isWatched = true;
    if (this.#isStored) return this.#parts.onStored();
    this.#isStored = true;
    // Whoever waits for it waits for what follows it.
    this.#store(this.#parts.channel.unread(), true).catch(() => undefined);
  }

  /** Resolves when all is stored. */
  async flushed(): Promise<void> {
    while (this.#flushing !== undefined) await this.#flushing;
  }

  close(reason: Error): void {
    this.#closed ??= reason;
    for (const { stored } of this.#waiting.splice(0)) stored.reject(this.#closed);
  }

  #store(events: readonly KeptEvent[], isPublished: boolean): Promise<void> {
    const stored = Promise.withResolvers<void>();
    this.#waiting.push({ events, isPublished, stored });
    this.#flushing ??= this.#flush();
    return stored.promise;
  }

  async #flush(): Promise<void> {
    // What is written in the same turn is stored together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#takeBatch();
      try {
        await this.#storeBatch(batch.flatMap(({ events }) => events));
        this.#parts.channel.publish(batch.flatMap(({ events, isPublished }) => (isPublished ? [] : events)));
        if (this.#isWatched) this.#parts.onStored();
        for (const { stored } of batch) stored.resolve();
      } catch (error) {
        for (const { stored } of batch) stored.reject(error);
        this.close(error instanceof Error ? error : new Error('the events could not be stored'));
      }
    }
    this.#flushing = undefined;
  }

  #takeBatch(): readonly Waiting[] {
    let bytes = 0;
    const isOver = this.#waiting.findIndex(({ events }, index) => {
      for (const event of events) bytes += event.bytes;
      return index > 0 && bytes > BATCH_BYTES;
    });
    return this.#waiting.splice(0, isOver === -1 ? this.#waiting.length : isOver);
  }

  async #storeBatch(events: readonly KeptEvent[]): Promise<void> {
    const { db, run } = this.#parts;
    const lateMs = performance.now() + MAX_AWAY_MS;
    for (;;)
      try {
        if (await storeEvents(db, run, events)) return;
        throw new LostRun('the run is not running by this attempt any more');
      } catch (error) {
        if (this.#closed !== undefined) throw this.#closed;
        const isAway = error instanceof DomainError && error.kind === 'unavailable';
        if (!isAway || performance.now() > lateMs) throw error;
        await pause(RETRY_MS);
        if (this.#closed !== undefined) throw this.#closed;
      }
  }
}
