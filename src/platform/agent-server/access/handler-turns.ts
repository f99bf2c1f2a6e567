// How many requests the authentication handler is asked about at once, by the address of the client, for nothing else is known
// before. A handler that waits for others must not keep the callers of other addresses waiting.
import type { Entry } from '../../api/access.ts';
import { type Clock, systemClock } from '../../api/shares/clock.ts';
import { FairQueue } from '../../api/shares/fair-queue.ts';
import { groupOf } from '../../identity/failure-limit.ts';

const PLACES = 512;
const PER_ADDRESS = 128;
/** As long as for other shares. */
const WAIT_MS = 2_000;
const MAX_WAITING = 1024;
/** No address has this name. */
const FAILING = 'failing';

/** Runs what asks the handler who calls. */
export type TakeHandlerTurn = <T>(
  from: Pick<Entry, 'peer' | 'authenticator'>,
  work: () => Promise<T>,
) => Promise<T>;

/** Addresses that have failed often have one share between them: that they are many helps nobody. */
export function createHandlerTurns(clock: Clock = systemClock): TakeHandlerTurn {
  const limits = { places: PLACES, perOrganization: PER_ADDRESS, perKey: PER_ADDRESS };
  const line = new FairQueue(
    { ...limits, waitMs: WAIT_MS, maxWaiting: MAX_WAITING },
    clock,
    'Too many requests of this address wait for their authentication: try again',
  );
  return ({ peer, authenticator }, work) => {
    const key = groupOf(peer);
    return line.run({ organization: authenticator.hasFailedOften(peer) ? FAILING : key, key }, work);
  };
}
