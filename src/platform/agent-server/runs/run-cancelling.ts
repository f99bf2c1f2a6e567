// Cancels a run by itself, apart from a request: its client has left and had asked for that.
import { describeBug } from '../../../base/log.ts';
import { announce, cancelRuns, settleIdle } from './cancellation.ts';
import type { RunPlace, RunRouteParts } from './run-parts.ts';
import { lockThread } from './thread-for-run.ts';

/** Returns at once. Never rejects: the run goes on where it cannot be cancelled. */
export function cancelForLeft(parts: RunRouteParts, place: RunPlace): void {
  cancelOne(parts, place).catch((error: unknown) =>
    parts.log.warn(
      { ...describeBug(error), run: place.runId },
      'a run goes on, although its client has left and it should end then',
    ),
  );
}

async function cancelOne(parts: RunRouteParts, { threadId, runId }: RunPlace): Promise<void> {
  const cancelled = await parts.store.write(async (trx) => {
    await lockThread(trx, threadId, undefined);
    const done = await cancelRuns(trx, [runId], 'interrupt');
    if (done.ended.length > 0) await settleIdle(trx, [threadId]);
    return done;
  });
  announce(parts, cancelled, 'interrupt');
}
