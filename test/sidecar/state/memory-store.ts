// A store in memory that fails or waits on request. It holds what a restart would find.
import type { StateStore } from '../../../src/sidecar/state/state-store.ts';

export type MemoryStore = StateStore & {
  readonly contents: Map<string, string>;
  /** What is written and removed from here on fails with this; undefined: no longer. */
  failWith(error: Error | undefined): void;
  /** The next write waits until `release`, and has then happened. `begun` resolves when it has come. */
  hold(): { readonly begun: Promise<void>; release(): void };
};

export function createMemoryStore(contents: Readonly<Record<string, string>> = {}): MemoryStore {
  const kept = new Map(Object.entries(contents));
  let failure: Error | undefined;
  let held: { readonly begin: () => void; readonly released: Promise<void> } | undefined;
  async function pass(): Promise<void> {
    const waiting = held;
    held = undefined;
    waiting?.begin();
    await waiting?.released;
    if (failure) throw failure;
  }
  return {
    contents: kept,
    failWith(error) {
      failure = error;
    },
    hold() {
      const begun = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      held = { begin: begun.resolve, released: released.promise };
      return { begun: begun.promise, release: released.resolve };
    },
    readAll: async () => new Map(kept),
    async write(id, content) {
      await pass();
      kept.set(id, content);
      return 'durable';
    },
    async remove(id) {
      await pass();
      kept.delete(id);
      return 'durable';
    },
    close: async () => {},
  };
}
