// The ticks by which client sessions are looked at, for tests that must let some of them pass.
import { unwatch, watch } from '../../../src/proxy/h2/session-watch.ts';

/** Waits for so many of them. */
export async function ticks(count: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = count;
  const watched = {
    tick(): void {
      left -= 1;
      if (left === 0) resolve();
    },
  };
  watch(watched);
  await promise;
  unwatch(watched);
}

/** Counts them from now on. */
export function countTicks(): Disposable & { readonly count: number } {
  let count = 0;
  const watched = {
    tick(): void {
      count += 1;
    },
  };
  watch(watched);
  return {
    get count() {
      return count;
    },
    [Symbol.dispose]: () => unwatch(watched),
  };
}
