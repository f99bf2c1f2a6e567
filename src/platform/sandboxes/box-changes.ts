// Who waits for a box to change is woken by the notifications of the database, and looks by themselves now and then: a
// notification that was lost, or that a pooler does not carry, costs time and nothing else.
import { setTimeout } from 'node:timers/promises';

export type BoxChanges = {
  /** Something about a box changed; undefined: anything may have. */
  emit(id?: string): void;
  /** Called for each change. Call the result to unsubscribe. */
  subscribe(onChange: (id: string | undefined) => void): () => void;
  /**
   * Resolves with the first result of `look` that is not undefined; with undefined after `ms`. Rejects with the signal. Without an id any
   * change counts.
   */
  waitFor<T>(
    id: string | undefined,
    look: () => Promise<T | undefined>,
    limits: Waiting,
  ): Promise<T | undefined>;
};

export type Waiting = {
  readonly ms: number;
  readonly signal: AbortSignal;
  /** Between two looks without a notification. */
  readonly everyMs?: number;
};

const LOOK_MS = 500;

export function createBoxChanges(): BoxChanges {
  const subscribers = new Set<(id: string | undefined) => void>();
  const subscribe = (onChange: (id: string | undefined) => void): (() => void) => {
    subscribers.add(onChange);
    return () => void subscribers.delete(onChange);
  };
  return {
    subscribe,
    emit(id) {
      for (const one of subscribers) one(id);
    },
    async waitFor(id, look, { ms, signal, everyMs = LOOK_MS }) {
      const until = performance.now() + ms;
      let changed = Promise.withResolvers<void>();
      const unsubscribe = subscribe((other) => {
        if (id === undefined || other === undefined || other === id) changed.resolve();
      });
      try {
        for (;;) {
          const found = await look();
          const left = until - performance.now();
          if (found !== undefined || left <= 0) return found;
          signal.throwIfAborted();
          await pause(changed.promise, Math.min(left, everyMs), signal);
          changed = Promise.withResolvers();
        }
      } finally {
        unsubscribe();
      }
    },
  };
}

/** Ends with the event, after `ms`, or with the signal; leaves no timer. */
async function pause(event: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
  const done = new AbortController();
  const either = AbortSignal.any([signal, done.signal]);
  try {
    await Promise.race([event, setTimeout(ms, undefined, { signal: either })]);
  } finally {
    done.abort();
  }
}
