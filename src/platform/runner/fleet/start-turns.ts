// How many agent servers start at once on this machine: after a restart there are dozens, each of which would be ready later. A start that
// takes long stops counting, so that a tenant whose program never becomes ready holds up nobody else.

export type StartTurns = {
  /** Settles as `work` does. Rejects with the reason of the signal before its turn has come. */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
};

const SLOW_MS = 4_000;

export function createStartTurns(concurrency: number, slowMs: number = SLOW_MS): StartTurns {
  let free = concurrency;
  /** The first of them gets the next turn that is given back. */
  const waiting = new Set<() => void>();
  const leave = (): void => {
    const [next] = waiting;
    if (next === undefined) free += 1;
    else {
      waiting.delete(next);
      next();
    }
  };
  const enter = async (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    if (free > 0) {
      free -= 1;
      return;
    }
    const turn = Promise.withResolvers<void>();
    const onAbort = (): void => {
      // Unless the turn has come at the same moment: then it is given back after the work.
      if (waiting.delete(turn.resolve)) turn.reject(signal.reason);
    };
    waiting.add(turn.resolve);
    signal.addEventListener('abort', onAbort, { once: true });
    await turn.promise.finally(() => signal.removeEventListener('abort', onAbort));
  };
  return {
    async run(work, signal) {
      await enter(signal);
      let isCounted = true;
      const leaveOnce = (): void => {
        if (isCounted) leave();
        isCounted = false;
      };
      const timer = setTimeout(leaveOnce, slowMs);
      try {
        signal.throwIfAborted();
        return await work();
      } finally {
        clearTimeout(timer);
        leaveOnce();
      }
    },
  };
}
