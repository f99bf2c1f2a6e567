// A clock that stands still until a test moves it.
import type { Clock } from '../../../../src/platform/api/shares/clock.ts';

export type FakeClock = Clock & {
  /** Calls what is due by then, in order, and lets its promises settle. */
  advance(ms: number): Promise<void>;
};

export function createFakeClock(): FakeClock {
  let nowMs = 0;
  const calls = new Set<{ readonly atMs: number; readonly call: () => void }>();
  return {
    now: () => nowMs,
    after(ms, call) {
      const timer = { atMs: nowMs + ms, call };
      calls.add(timer);
      return () => void calls.delete(timer);
    },
    async advance(ms) {
      const untilMs = nowMs + ms;
      for (;;) {
        const due = [...calls].filter(({ atMs }) => atMs <= untilMs).toSorted((a, b) => a.atMs - b.atMs);
        const [first] = due;
        if (first === undefined) break;
        calls.delete(first);
        nowMs = first.atMs;
        first.call();
        await settle();
      }
      nowMs = untilMs;
      await settle();
    },
  };
}

/** Lets every promise settle that waits for nothing else. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
