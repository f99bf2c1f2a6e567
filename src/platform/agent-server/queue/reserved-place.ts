// A place of this process for a run that is about to be created: its transaction creates it as running by this process, which
// starts it after the commit. Where the process ends between the two, the lease of the run lapses.
import type { Claim } from './claims.ts';
import type { KnownStart } from './execution.ts';

/** A run without such a place, once it is created. */
export type OfferedRun = {
  readonly runId: string;
  readonly threadId: string;
  readonly party: string;
  /** False: it is to start later. */
  readonly isDue: boolean;
};

export type ReservedPlace = {
  /** As `lease_owner` names the process. */
  readonly owner: string;
  /** After the commit, once, and before `release`. */
  start(claim: Claim, known: KnownStart): void;
  /** A run that was started keeps a place of its own. May be repeated. */
  release(): void;
};

export type Reservation = {
  readonly owner: string;
  onStart(claim: Claim, known: KnownStart): void;
  onRelease(): void;
};

export function createReservedPlace({ owner, onStart, onRelease }: Reservation): ReservedPlace {
  let isHeld = true;
  return {
    owner,
    start(claim, known) {
      if (!isHeld) throw new Error('the place for a run was released before the run was started');
      onStart(claim, known);
    },
    release() {
      if (!isHeld) return;
      isHeld = false;
      onRelease();
    },
  };
}
