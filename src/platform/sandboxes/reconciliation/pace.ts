// How often the boxes of a machine are looked at. A few passes may follow each other at once, so that nobody waits for one; after those
// the time between passes grows with what a pass costs: thousands of boxes must not keep the processor and the database busy.

export type Pace = {
  /** Before the next pass; 0: it may begin. */
  pauseMs(): number;
  /** A pass has taken so long. */
  spend(ms: number): void;
};

/** A pass uses up several times what it took, and at least 50 ms, of the time that passes. */
const FACTOR = 4;
const MIN_MS = 50;
/** Also of a pass that waited for a runtime that does not respond. */
const MAX_MS = 1_000;
/** What may be used up in advance. */
const BURST_MS = 300;

export function createPace(now: () => number = () => performance.now()): Pace {
  let usedUpTo = Number.NEGATIVE_INFINITY;
  return {
    pauseMs: () => Math.max(usedUpTo - BURST_MS - now(), 0),
    spend(ms) {
      const cost = Math.min(Math.max(FACTOR * ms, MIN_MS), MAX_MS);
      usedUpTo = Math.max(usedUpTo, now()) + cost;
    },
  };
}
