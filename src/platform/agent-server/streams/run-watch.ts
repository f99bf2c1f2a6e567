// Checks the runs that this process waits for and does not execute: soon after somebody comes, and every two seconds, because a
// notification may be lost. One query for all of them.
import { describeBug, type Log } from '../../../base/log.ts';
import type { Database } from '../../store/database.ts';
import type { RunChannel } from './run-channel.ts';
import { readRunFacts, type RunFacts } from './stored-events.ts';

export type RunWatchParts = {
  readonly db: Pick<Database, 'selectFrom'>;
  readonly log: Log;
  /** Those that may have to be checked. */
  channels(): Iterable<RunChannel>;
  /** Asks the process that executes the run to store its events. */
  askForEvents(runId: string): void;
  onEnded(channel: RunChannel): void;
  readonly sweepMs?: number | undefined;
};

const SWEEP_MS = 2_000;
/** Most runs begin here right after somebody waits for them, and need no check then. */
const FIRST_CHECK_MS = 20;
/** Of sweeps without a new event, after which the request for events may have been lost. */
const SILENT_SWEEPS = 5;

export class RunWatch {
  readonly #parts: RunWatchParts;
  readonly #timer: NodeJS.Timeout;
  readonly #soon: Set<RunChannel> = new Set();
  readonly #silent: WeakMap<RunChannel, number> = new WeakMap();
  /** With each check, of a run that waits for its time. */
  onScheduled: ((channel: RunChannel) => void) | undefined;
  #first: NodeJS.Timeout | undefined;
  #checking: Promise<void> = Promise.resolve();

  constructor(parts: RunWatchParts) {
    this.#parts = parts;
    this.#timer = setInterval(() => this.checkAll(), parts.sweepMs ?? SWEEP_MS).unref();
  }

  add(channel: RunChannel): void {
    this.#soon.add(channel);
    this.#first ??= setTimeout(() => {
      this.#first = undefined;
      const channels = [...this.#soon];
      this.#soon.clear();
      this.#check(channels);
    }, FIRST_CHECK_MS).unref();
  }

  checkAll(): void {
    this.#check([...this.#parts.channels()]);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#first);
    await this.#checking;
  }

  #check(channels: readonly RunChannel[]): void {
    const awaited = channels.filter(({ isHere, hasEnded, isAwaited }) => !isHere && !hasEnded && isAwaited);
    if (awaited.length === 0) return;
    this.#checking = this.#checking
      .then(() => this.#read(awaited))
      .catch((error: unknown) => {
        this.#parts.log.warn(describeBug(error), 'the state of runs could not be read');
      });
  }

  async #read(channels: readonly RunChannel[]): Promise<void> {
    const facts = await readRunFacts(
      this.#parts.db,
      channels.map(({ runId }) => runId),
    );
    for (const channel of channels) if (!channel.isHere) this.#take(channel, facts.get(channel.runId));
  }

  #take(channel: RunChannel, facts: RunFacts | undefined): void {
    if (facts === undefined || facts.hasEnded) {
      channel.end();
      return this.#parts.onEnded(channel);
    }
    if (facts.isScheduled) this.onScheduled?.(channel);
    const isNew = facts.lastStored > channel.lastStored;
    const silent = isNew ? 0 : (this.#silent.get(channel) ?? 0) + 1;
    this.#silent.set(channel, silent);
    if (isNew) channel.wake();
    const mayBeUnknown = facts.attempt !== channel.attempt || silent % SILENT_SWEEPS === 0;
    if (mayBeUnknown && channel.readers > 0) this.#parts.askForEvents(channel.runId);
    channel.attempt = facts.attempt;
    channel.lastStored = facts.lastStored;
  }
}
