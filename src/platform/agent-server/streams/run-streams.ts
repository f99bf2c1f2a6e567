// The events of runs: written by the process that executes a run, read by any process of the database. A reader in the
// executing process costs the database nothing; for one elsewhere, and for runs that are resumable, events are stored.
import { randomUUID } from 'node:crypto';
import type { WorkerEvent } from '../../../agent-worker/protocol/messages.ts';
import type { Log } from '../../../base/log.ts';
import type { Store } from '../../store/database.ts';
import type { RunEvent } from './event-queue.ts';
import { EventWriter, LostRun } from './event-writer.ts';
import { FollowedThreads } from './followed-threads.ts';
import { RunChannel } from './run-channel.ts';
import type { RunNotice, RunNotices } from './run-notices.ts';
import { MAX_BACKLOG_BYTES, type RunReader } from './run-reader.ts';
import { readRun } from './run-reading.ts';
import { RunWatch } from './run-watch.ts';
import { lastStored, type Range, readStored } from './stored-events.ts';

export type ClaimedRun = {
  readonly runId: string;
  readonly threadId: string;
  readonly attempt: number;
  readonly isResumable: boolean;
  /** Of its row: the process whose client reads it from its first event on. */
  readonly streamedBy: string | null;
};

export type RunEventWriter = {
  /**
   * Resolves when the events are stored, where they have to be, and handed on: then more may come. Rejects with a LostRun when
   * another process has taken the run over. The event `error` of a run is written before the commit that ends the run.
   */
  write(events: readonly WorkerEvent[]): Promise<void>;
  /** After the commit that ended the run. */
  end(): Promise<void>;
  /** The run has not ended: it was given back or taken over, and its readers wait for its next attempt. */
  release(): Promise<void>;
};

export type ReadOptions = {
  /** The number of the last event that is known; `-1` is before all of them. Absent: from now on, and what nobody has read yet. */
  readonly after?: number | undefined;
  readonly signal: AbortSignal;
};

export type RunStreams = {
  /** Of this process, as `agent_runs.streamed_by` names it. */
  readonly processId: string;
  /** In the executing process, after the claim. Writes the event `metadata`. */
  open(run: ClaimedRun): Promise<RunEventWriter>;
  /** In any process: several events at a time, until the run has ended. A run that does not exist has ended. */
  read(runId: string, options: ReadOptions): AsyncIterable<readonly RunEvent[]>;
  /** In any process: resolves when the run has a final status or is deleted, or when the signal aborts. */
  ended(runId: string, signal: AbortSignal): Promise<void>;
  /** Threads whose runs somebody in this process reads one after another. */
  readonly followed: Pick<FollowedThreads, 'follow' | 'isFollowedElsewhere' | 'isFollowedHere' | 'updated'>;
  /** The process is replaced: readers that wait for what may not come for long are cut, now and later. */
  retire(): void;
  /** Aborts with `retire`. */
  readonly retiring: AbortSignal;
  close(): Promise<void>;
};

export type RunStreamsParts = {
  readonly store: Pick<Store, 'db'>;
  readonly notices: RunNotices;
  readonly log: Log;
  /** How often runs are checked that this process waits for, in case a notice was lost. */
  readonly sweepMs?: number;
};

/** How long events of an ended run are kept that nobody has read. */
const UNREAD_MS = 10_000;
/** An attempt that does not know how many events were sent before it, where none is stored, begins far behind them. */
const ATTEMPT_EVENTS = 1_000_000_000;

const CLOSED = 'the process is shutting down';
/** Also of streams of threads. */
export const RETIRED = 'the process is replaced by another one';
/** Of ended runs together: the oldest are forgotten first. */
const ALL_UNREAD_BYTES = 32 * 1024 * 1024;

export function createRunStreams(parts: RunStreamsParts): RunStreams {
  return new Streams(parts);
}

class Streams implements RunStreams {
  readonly processId: string = randomUUID();
  readonly followed: FollowedThreads;
  readonly #parts: RunStreamsParts;
  readonly #channels: Map<string, RunChannel> = new Map();
  readonly #writers: Map<string, EventWriter> = new Map();
  readonly #watch: RunWatch;
  /** Ended runs with events that nobody has read, and their time. */
  readonly #unread: Map<RunChannel, number> = new Map();
  readonly #timer: NodeJS.Timeout;
  readonly #unsubscribe: () => void;
  readonly #retirement: AbortController = new AbortController();
  /** Of readers, and not settled yet. */
  readonly #queries: Set<Promise<void>> = new Set();
  #isClosed = false;

  constructor(parts: RunStreamsParts) {
    const { notices, log, store, sweepMs } = parts;
    this.#parts = parts;
    this.followed = new FollowedThreads((threadId) => notices.send({ kind: 'follow', threadId }));
    this.#watch = new RunWatch({
      ...{ db: store.db, log, sweepMs },
      channels: () => this.#channels.values(),
      askForEvents: (runId) => notices.send({ kind: 'watch', runId }),
      onEnded: (channel) => this.#dropIdle(channel),
    });
    this.#timer = setInterval(() => this.#forgetUnread(), UNREAD_MS / 2).unref();
    this.#unsubscribe = notices.subscribe({
      onNotice: (notice) => this.#take(notice),
      onMissed: () => {
        this.#watch.checkAll();
        this.followed.repeat();
      },
    });
  }

  async open(run: ClaimedRun): Promise<RunEventWriter> {
    const { runId, threadId, attempt, isResumable, streamedBy } = run;
    const first = attempt === 1 ? 0 : await this.#firstNumber(run);
    const isFollowed = this.followed.isFollowedElsewhere(threadId);
    const isStored = isResumable || isFollowed || (streamedBy ?? this.processId) !== this.processId;
    this.#writers.get(runId)?.close(new LostRun('the run was opened again'));
    this.followed.opened(threadId, runId);
    const channel = this.#channelOf(runId);
    channel.open(first, streamedBy === this.processId ? MAX_BACKLOG_BYTES : 0);
    const { notices, store } = this.#parts;
    const onStored = (): void => notices.send({ kind: 'events', runId });
    const writer = new EventWriter({ db: store.db, channel, run: { runId, attempt }, isStored, onStored });
    this.#writers.set(runId, writer);
    const opened = {
      write: (events: readonly WorkerEvent[]) => writer.write(events),
      end: () => this.#close(channel, writer, true),
      release: () => this.#close(channel, writer, false),
    };
    try {
      await writer.write([{ event: 'metadata', data: JSON.stringify({ run_id: runId, attempt }) }]);
    } catch (error) {
      await opened.release();
      throw error;
    }
    if (isFollowed) notices.send({ kind: 'started', threadId });
    return opened;
  }

  read(runId: string, { after, signal }: ReadOptions): AsyncIterable<readonly RunEvent[]> {
    if (after === undefined) return this.#read(runId, undefined, signal);
    // At once, so that the reader misses nothing that comes before it is first asked.
    const joined = this.#join(runId, after);
    // One that is never asked has no end of its own.
    signal.addEventListener('abort', () => this.#leave(joined), { once: true });
    if (signal.aborted) this.#leave(joined);
    return this.#read(runId, joined, signal);
  }

  async ended(runId: string, signal: AbortSignal): Promise<void> {
    const channel = this.#channelOf(runId);
    const { promise, resolve } = Promise.withResolvers<void>();
    if (channel.hasEnded || signal.aborted) resolve();
    else if (!channel.isHere) this.#watch.add(channel);
    const done = (): void => resolve();
    channel.onEnd(done);
    signal.addEventListener('abort', done);
    await promise;
    channel.offEnd(done);
    signal.removeEventListener('abort', done);
    this.#dropIdle(channel);
  }

  get retiring(): AbortSignal {
    return this.#retirement.signal;
  }

  retire(): void {
    this.#retirement.abort();
    this.#watch.onScheduled = (channel) => channel.cut(RETIRED);
    this.#watch.checkAll();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    clearInterval(this.#timer);
    this.followed.close();
    for (const writer of this.#writers.values()) writer.close(new LostRun(CLOSED));
    for (const channel of this.#channels.values()) channel.cut(CLOSED);
    await Promise.all(Array.from(this.#writers.values(), (writer) => writer.flushed()));
    await Promise.all(this.#queries);
    await this.#watch.close();
  }

  async *#read(
    runId: string,
    joined: Joined | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<readonly RunEvent[], void, undefined> {
    const { db } = this.#parts.store;
    const now = joined === undefined ? this.#channels.get(runId)?.now : undefined;
    const findNow = (): Promise<number> => this.#track(lastStored(db, runId));
    const { channel, reader } = joined ?? this.#join(runId, now ?? (await findNow()));
    try {
      const read = (range: Range) => this.#track(readStored(db, range));
      yield* readRun({ readStored: read, channel, reader, signal });
    } finally {
      this.#dropIdle(channel);
    }
  }

  async #track<T>(query: Promise<T>): Promise<T> {
    const settled = query.then(
      () => undefined,
      () => undefined,
    );
    this.#queries.add(settled);
    try {
      return await query;
    } finally {
      this.#queries.delete(settled);
    }
  }

  #join(runId: string, cursor: number): Joined {
    const channel = this.#channelOf(runId);
    const reader = channel.join(cursor);
    if (this.#isClosed) reader.cut(CLOSED);
    if (!channel.isHere && !channel.hasEnded) this.#watch.add(channel);
    return { channel, reader };
  }

  #leave({ channel, reader }: Joined): void {
    channel.leave(reader);
    this.#dropIdle(channel);
  }

  async #close(channel: RunChannel, writer: EventWriter, hasEnded: boolean): Promise<void> {
    const { runId } = channel;
    if (hasEnded) await writer.flushed();
    writer.close(new LostRun(hasEnded ? 'the run has ended' : 'the run was given back'));
    await writer.flushed();
    if (this.#writers.get(runId) !== writer) return;
    this.#writers.delete(runId);
    if (hasEnded) channel.end();
    else {
      channel.release();
      this.#watch.add(channel);
    }
    this.#unread.set(channel, performance.now());
    this.#forgetUnread();
  }

  /** Of an attempt after the first. */
  async #firstNumber({ runId, attempt, isResumable }: ClaimedRun): Promise<number> {
    const stored = await lastStored(this.#parts.store.db, runId);
    const next = Math.max(stored + 1, this.#channels.get(runId)?.next ?? 0);
    return next > 0 || isResumable ? next : (attempt - 1) * ATTEMPT_EVENTS;
  }

  #take(notice: RunNotice): void {
    if ('threadId' in notice) {
      if (notice.kind === 'follow') this.followed.noteElsewhere(notice.threadId);
      else this.followed.changed(notice.threadId);
      return;
    }
    const { kind, runId } = notice;
    if (kind === 'watch') return this.#writers.get(runId)?.watch();
    const channel = this.#channels.get(runId);
    // What is executed here ends by its writer.
    if (channel === undefined || channel.isHere) return;
    if (kind === 'ended') channel.end();
    else if (kind === 'events') channel.wake();
  }

  #channelOf(runId: string): RunChannel {
    const channel = this.#channels.get(runId) ?? new RunChannel(runId);
    this.#channels.set(runId, channel);
    return channel;
  }

  #dropIdle(channel: RunChannel): void {
    if (channel.isIdle && this.#channels.get(channel.runId) === channel) this.#channels.delete(channel.runId);
  }

  #forgetUnread(): void {
    const lateMs = performance.now() - UNREAD_MS;
    let bytes = 0;
    for (const channel of this.#unread.keys()) bytes += channel.unreadBytes;
    for (const [channel, sinceMs] of this.#unread) {
      if (sinceMs > lateMs && bytes <= ALL_UNREAD_BYTES && channel.unreadBytes > 0) continue;
      bytes -= channel.unreadBytes;
      this.#unread.delete(channel);
      channel.forgetUnread();
      this.#dropIdle(channel);
    }
  }
}

type Joined = { readonly channel: RunChannel; readonly reader: RunReader };
