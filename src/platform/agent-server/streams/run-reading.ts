// What a reader of a run gets: stored events, then those that come, without a gap or a repetition between them.
import { setTimeout as pause } from 'node:timers/promises';
import { DomainError } from '../../../base/domain-error.ts';
import type { RunEvent } from './event-queue.ts';
import type { RunChannel } from './run-channel.ts';
import type { RunReader } from './run-reader.ts';
import type { Range } from './stored-events.ts';

export type Reading = {
  /** The first of these events that are stored. */
  readonly readStored: (range: Range) => Promise<readonly RunEvent[]>;
  readonly channel: RunChannel;
  readonly reader: RunReader;
  readonly signal: AbortSignal;
};

/** Until the run has ended, or the signal aborts. Rejects with an EndedEarly where the reader was cut. */
export async function* readRun(reading: Reading): AsyncGenerator<readonly RunEvent[], void, undefined> {
  const { channel, reader, signal } = reading;
  const wake = (): void => reader.wake();
  signal.addEventListener('abort', wake);
  try {
    while (!signal.aborted) {
      reader.throwIfCut();
      const batch = reader.take();
      if (batch.length > 0) {
        yield batch;
        continue;
      }
      reader.rest();
      const { hasEnded } = channel;
      const found = await readGap(reading);
      if (found === 'none' && hasEnded) return;
      if (found === 'none') await reader.woken();
      else if (found !== 'passed') yield found;
    }
  } finally {
    signal.removeEventListener('abort', wake);
    channel.leave(reader);
  }
}

/** What is stored before the events that wait, or `passed` when that is known to be nothing. */
async function readGap(reading: Reading): Promise<readonly RunEvent[] | 'passed' | 'none'> {
  const { channel, reader } = reading;
  const end = reader.firstWaiting() ?? channel.known;
  if (end !== undefined && reader.cursor + 1 >= end) return 'none';
  const rows = await readPatiently(reading, { runId: channel.runId, after: reader.cursor, before: end });
  if (rows === undefined) return 'passed';
  const last = rows.at(-1);
  if (last !== undefined) {
    reader.cursor = Number(last.id);
    return rows;
  }
  if (end === undefined) return 'none';
  // They were never stored: nobody had asked for them.
  reader.cursor = end - 1;
  return 'passed';
}

const RETRY_MS = 500;

/** A database that is away for a moment ends no stream; undefined when it was. */
async function readPatiently(
  { readStored, signal }: Reading,
  range: Range,
): Promise<readonly RunEvent[] | undefined> {
  try {
    return await readStored(range);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    await pause(RETRY_MS, undefined, { signal }).catch(() => undefined);
    return undefined;
  }
}
