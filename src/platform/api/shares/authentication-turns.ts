// Whose key is looked up next, by the address of the client: nothing else is known before. Who sends much from one address, with
// right keys or wrong ones, delays each request of other addresses by one lookup and no more.
import { groupOf } from '../../identity/failure-limit.ts';
import { type Clock, systemClock } from './clock.ts';
import { FairQueue } from './fair-queue.ts';

/** Runs what finds out who calls. */
export type TakeTurn = <T>(peer: string, work: () => Promise<T>) => Promise<T>;

export type TurnOptions = {
  /** Connections for authentication. */
  readonly places: number;
  /** Whether the address has sent too many wrong keys. */
  hasFailedOften(peer: string): boolean;
  readonly clock?: Clock;
};

/** As long as for a connection. */
const WAIT_MS = 3_000;
/** The connections of the process bound how many wait. */
const MAX_WAITING = Infinity;
/** No address has this name. */
const FAILING = 'failing';

export function createAuthenticationTurns({
  places,
  hasFailedOften,
  clock = systemClock,
}: TurnOptions): TakeTurn {
  const line = new FairQueue(
    { places, perOrganization: places, perKey: places, waitMs: WAIT_MS, maxWaiting: MAX_WAITING },
    clock,
    'The platform is busy: try again',
    // Whoever waits for so long waits for a database that is slow.
    'unavailable',
  );
  return (peer, work) => {
    const key = groupOf(peer);
    // Nobody is rejected by an address alone: it may be that of a proxy, with right keys among the wrong ones. Addresses with too
    // many wrong keys have one turn between them, so that having many of them helps nobody.
    return line.run({ organization: hasFailedOften(peer) ? FAILING : key, key }, work);
  };
}
