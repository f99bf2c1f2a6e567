// The time and the timers of the shares, so that a test can move them.

export type Clock = {
  /** Milliseconds. */
  now(): number;
  /** Returns a function that cancels the call. No timer keeps the process alive. */
  after(ms: number, call: () => void): () => void;
};

export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, call) {
    const timer = setTimeout(call, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
