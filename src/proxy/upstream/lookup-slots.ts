// How many lookups run at once. getaddrinfo blocks a thread for as long as a DNS server is silent, and all sandboxes share
// the threads. The more threads a sandbox uses, the more must be free before it gets another one, so that a sandbox that
// uses none finds a thread although others look up names of silent servers.

export type LookupSlots = ReturnType<typeof createLookupSlots>;
export type LookupShare = ReturnType<LookupSlots['share']>;

// With 30 slots, the first sandbox that wants all of them gets 8, the tenth still gets one.
const LEFT_PER_HELD = 3;

type Holder = { held: number; readonly max: () => number };
type Waiter = { readonly holder: Holder; go(): void };

export function createLookupSlots(total: number) {
  let free = total;
  const waiting = new Set<Waiter>();

  const mayTake = ({ held, max }: Holder): boolean =>
    held < max() && free > 0 && (held === 0 || free > LEFT_PER_HELD * held);

  function take(holder: Holder): void {
    holder.held += 1;
    free -= 1;
  }

  /** Sandboxes that hold the fewest slots first; among them, the one that has waited longest. */
  function serve(): void {
    for (;;) {
      let next: Waiter | undefined;
      for (const waiter of waiting)
        if (mayTake(waiter.holder) && (!next || waiter.holder.held < next.holder.held)) next = waiter;
      if (!next) return;
      take(next.holder);
      next.go();
    }
  }

  function wait(holder: Holder, timeoutMs: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const end = (isServed: boolean): void => {
      clearTimeout(timer);
      waiting.delete(waiter);
      resolve(isServed);
    };
    const waiter: Waiter = { holder, go: () => end(true) };
    const timer = setTimeout(end, timeoutMs, false);
    waiting.add(waiter);
    return promise;
  }

  return {
    /** The share of one sandbox; `max` is read at each use. */
    share(max: () => number) {
      const holder: Holder = { held: 0, max };
      return {
        /** `true` at once if a slot is free. False after `timeoutMs`: the request has timed out by then. */
        acquire(timeoutMs: number): true | Promise<boolean> {
          if (!mayTake(holder)) return wait(holder, timeoutMs);
          take(holder);
          return true;
        },
        release(): void {
          holder.held -= 1;
          free += 1;
          serve();
        },
      };
    },
  };
}
