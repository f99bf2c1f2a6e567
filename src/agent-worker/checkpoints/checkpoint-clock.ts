// The clock of this machine beside that of the machine that wrote the last checkpoint of a thread. Ids of checkpoints begin with their
// time, and the largest is the last one: what a machine stores whose clock is behind would be taken for older, and be lost without a trace.
import { setTimeout as pause } from 'node:timers/promises';

/** Clocks that are set by NTP differ by less. */
const MAX_WAIT_MS = 5_000;
/** From the beginning of the Gregorian calendar to that of 1970, in the units of an id: 100 ns (RFC 9562 §5.1). */
const GREGORIAN = 122_192_928_000_000_000n;
const UNITS_OF_MS = 10_000n;

export class ClockError extends Error {
  override readonly name: string = 'ClockError';
}

/** Resolves when this machine makes larger ids. Rejects with a ClockError where that is far away. */
export async function waitForClock(
  checkpointId: string,
  onWait: (message: string) => void = () => undefined,
): Promise<void> {
  const madeMs = timeOf(checkpointId);
  if (madeMs === undefined) return;
  const aheadMs = madeMs - Date.now();
  if (aheadMs < 0) return;
  if (aheadMs > MAX_WAIT_MS)
    throw new ClockError(
      `The last checkpoint of this thread was made ${Math.ceil(aheadMs / 1000)} seconds from now by the clock of this machine, so that nothing can follow it: set the clocks of all machines by NTP`,
    );
  if (aheadMs > 0)
    onWait(
      `waits ${aheadMs} ms: the clock of this machine is behind that of the one that ran the thread before`,
    );
  while (Date.now() <= madeMs) await pause(madeMs - Date.now() + 1);
}

/** Of a UUID of version 6 alone. */
export function timeOf(id: string): number | undefined {
  const [, high, middle, low] = /^([\da-f]{8})-([\da-f]{4})-6([\da-f]{3})-/i.exec(id) ?? [];
  if (high === undefined) return undefined;
  return Number((BigInt(`0x${high}${middle}${low}`) - GREGORIAN) / UNITS_OF_MS);
}
