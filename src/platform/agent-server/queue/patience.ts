// Waits for a database that is away: what a run has to write is written when it is back, unless another process has the run. And for
// what may take only so long.
import { setTimeout } from 'node:timers/promises';
import { DomainError } from '../../../base/domain-error.ts';
import type { ServerCallPort } from '../workers/graph-workers.ts';

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;

/** Runs `work` again as long as it fails with `unavailable`; what it does must be safe to repeat. Rejects when the signal aborts. */
export async function untilAvailable<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof DomainError) || error.kind !== 'unavailable') throw error;
    }
    await setTimeout(pauseMs, undefined, { signal, ref: false });
  }
}

/** A port whose calls wait for the database, until `lost` aborts: they are refused then. Each of them may be repeated. */
export function waitForDatabase(port: ServerCallPort, lost: AbortSignal): ServerCallPort {
  return {
    async handle(method, params) {
      try {
        return await untilAvailable(lost, () => port.handle(method, params));
      } catch (error) {
        // That is no failure of this server, whose log tells of those.
        if (lost.aborted) throw new DomainError('conflict', 'This attempt of the run has ended');
        throw error;
      }
    },
  };
}

/** Resolves with the work, or after so long. */
export async function waitAtMost(ms: number, work: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const time = setTimeout(ms, undefined, { signal: over.signal }).catch(() => undefined);
  await Promise.race([work, time]);
  over.abort();
}
