// A run as one process sees it: who reads its events here, who waits for its end, and whether it is executed here.
import { setTimeout as pause } from 'node:timers/promises';
import { EventQueue, type KeptEvent } from './event-queue.ts';
import { RunReader } from './run-reader.ts';

/** What a run has said before anybody read it. */
type Unread = { readonly events: EventQueue; readonly maxBytes: number; readonly sinceMs: number };

/** How long a creator may take to come for more than `MAX_UNREAD_BYTES`. */
const CREATOR_MS = 10_000;
const MAX_UNREAD_BYTES = 256 * 1024;

/** How long a run waits for readers that are too far behind, before they are cut. */
const PACE_MS = 250;

export class RunChannel {
  readonly runId: string;
  readonly #readers: Set<RunReader> = new Set();
  readonly #onEnd: Set<() => void> = new Set();
  #unread: Unread | undefined;
  #onRead: (() => void) | undefined;
  #hasEndedHere = false;
  /** A writer of this process is open. */
  isHere = false;
  hasEnded = false;
  /** The number of the next event, of a run that is or was executed here. */
  next: number | undefined;
  /** As the last check of the database saw it. */
  attempt = 0;
  lastStored = -1;

  constructor(runId: string) {
    this.runId = runId;
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** Somebody reads it, or waits for its end. */
  get isAwaited(): boolean {
    return this.#readers.size > 0 || this.#onEnd.size > 0;
  }

  get isIdle(): boolean {
    return !this.isHere && !this.isAwaited && this.#unread === undefined;
  }

  /** The number after which all events come, for a reader who wants what comes from now on; undefined if the database knows it. */
  get now(): number | undefined {
    const first = this.#unread?.events.first;
    if (first !== undefined) return first.number - 1;
    return this.isHere && this.next !== undefined ? this.next - 1 : undefined;
  }

  /** The number before which all events were handed to readers here, or are stored, or lost; undefined if nobody here knows. */
  get known(): number | undefined {
    return this.isHere || this.#hasEndedHere ? this.next : undefined;
  }

  /** `creatorBytes`: of events that wait for the one who created the run here. */
  open(next: number, creatorBytes = 0): void {
    this.isHere = true;
    this.next = next;
    const maxBytes = Math.max(creatorBytes, MAX_UNREAD_BYTES);
    if (this.#readers.size === 0)
      this.#unread ??= { events: new EventQueue(), maxBytes, sinceMs: performance.now() };
  }

  join(cursor: number): RunReader {
    const reader = new RunReader(cursor, () => this.#onRead?.());
    this.#readers.add(reader);
    for (const event of this.#unread?.events ?? []) reader.push(event);
    this.#unread = undefined;
    return reader;
  }

  leave(reader: RunReader): void {
    this.#readers.delete(reader);
    this.#onRead?.();
  }

  publish(events: readonly KeptEvent[]): void {
    const last = events.at(-1);
    if (last === undefined) return;
    this.next = Math.max(this.next ?? 0, last.number + 1);
    for (const reader of this.#readers) for (const event of events) reader.push(event);
    if (this.#unread === undefined) return;
    const { events: queue, maxBytes, sinceMs } = this.#unread;
    for (const event of events) queue.push(event);
    const isLate = performance.now() - sinceMs > CREATOR_MS;
    if (queue.bytes > (isLate ? MAX_UNREAD_BYTES : maxBytes)) this.#unread = undefined;
  }

  /** Resolves when no reader is too far behind. Those that do not read are cut. */
  async paced(): Promise<void> {
    if (this.#behind().length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onRead = () => (this.#behind().length === 0 ? resolve() : undefined);
    const limit = new AbortController();
    await Promise.race([promise, pause(PACE_MS, undefined, { signal: limit.signal }).catch(() => undefined)]);
    limit.abort();
    this.#onRead = undefined;
    for (const reader of this.#behind()) reader.cut('the client does not read');
  }

  #behind(): readonly RunReader[] {
    return Array.from(this.#readers).filter(({ isBehind }) => isBehind);
  }

  /** What nobody has read yet, which stays here too. */
  unread(): readonly KeptEvent[] {
    return [...(this.#unread?.events ?? [])];
  }

  get unreadBytes(): number {
    return this.#unread?.events.bytes ?? 0;
  }

  forgetUnread(): void {
    this.#unread = undefined;
  }

  /** Something may be new in the database. */
  wake(): void {
    for (const reader of this.#readers) reader.wake();
  }

  cut(reason: string): void {
    for (const reader of this.#readers) reader.cut(reason);
  }

  onEnd(call: () => void): void {
    this.#onEnd.add(call);
  }

  offEnd(call: () => void): void {
    this.#onEnd.delete(call);
  }

  /** The run has not ended; its next attempt may begin anywhere. */
  release(): void {
    this.isHere = false;
    this.wake();
  }

  end(): void {
    this.hasEnded = true;
    this.#hasEndedHere = this.isHere;
    this.isHere = false;
    for (const call of this.#onEnd) call();
    this.wake();
  }
}
