// Cancels a run by itself, apart from a request: its client has left and had asked for that.
import { RequestError } from '../../../base/http/request-body.ts';
import { describeBug } from '../../../base/log.ts';
import { announce, cancelRuns, settleIdle } from './cancellation.ts';
import type { RunPlace, RunRouteParts } from './run-parts.ts';
import { lockThread } from './thread-for-run.ts';

/**
 * Cancels the run once its client leaves, from now on: a response that was not begun by then has no stream that would notice it. Returns
 * what does so at once, for who notices it first.
 */
export function cancelWhenLeft(parts: RunRouteParts, place: RunPlace, signal: AbortSignal): () => void {
  let isCancelled = false;
  const cancel = (): void => {
    if (isCancelled) return;
    isCancelled = true;
    cancelForLeft(parts, place);
  };
  const onAbort = (): void => {
    // Not because the process shuts down.
    const { reason } = signal;
    if (reason instanceof RequestError && reason.kind === 'client_gone') cancel();
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  return cancel;
}

/** Returns at once. Never rejects: the run goes on where it cannot be cancelled. */
function cancelForLeft(parts: RunRouteParts, place: RunPlace): void {
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
