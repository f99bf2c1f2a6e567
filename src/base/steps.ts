// Work in steps: a generator that yields where it may be interrupted, so that a long computation need not hold up the event
// loop. The work itself stays pure and knows nothing of turns.

export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs all steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

// A request takes several turns of the event loop, and may wait for a slice in each of them: with slices of 4 ms the p99 of a
// bystander grew by more than 25 ms (bench/writes.ts).
const SLICE_MS = 1;

/** Runs the steps in slices of a millisecond or one step, each in a turn of its own. */
export async function finishInSlices<T>(steps: Steps<T>, now: () => number = monotonicMs): Promise<T> {
  for (;;) {
    await nextTurn();
    const endMs = now() + SLICE_MS;
    do {
      const step = steps.next();
      if (step.done === true) return step.value;
    } while (now() < endMs);
  }
}

/** To be awaited between two steps: it lets others go on where the steps since then have taken a millisecond. */
export type Pace = () => Promise<void>;

export function createPace(now: () => number = monotonicMs): Pace {
  let endMs = now() + SLICE_MS;
  return async () => {
    if (now() < endMs) return;
    await nextTurn();
    endMs = now() + SLICE_MS;
  };
}

/** Resolves after the I/O that is ready has been handled. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function monotonicMs(): number {
  return performance.now();
}
