// How many lookups run at once. getaddrinfo holds a thread for as long as a silent server likes, and the threads are
// shared by every sandbox: the more of them one sandbox holds, the more must be left over for it to get another, so that
// one that holds none finds a thread though others ask for names that nobody answers.
export type LookupShare = {
  /** `true` at once where a slot is free. False after `timeoutMs`: whoever asked has been answered by then. */
  acquire(timeoutMs: number): true | Promise<boolean>;
  release(): void;
};

export type LookupSlots = {
  /** The share of one sandbox; `max` is asked at each use. */
  share(max: () => number): LookupShare;
};

// With 30 slots the first of those who ask for all gets 8, the tenth still one.
const LEFT_PER_HELD = 3;

type Holder = { held: number; readonly max: () => number };
type Waiter = { readonly holder: Holder; go(): void };

export function createLookupSlots(total: number): LookupSlots {
  let free = total;
  const waiting = new Set<Waiter>();

  const mayTake = ({ held, max }: Holder): boolean =>
    held < max() && free > 0 && (held === 0 || free > LEFT_PER_HELD * held);

  function take(holder: Holder): void {
    holder.held += 1;
    free -= 1;
  }

  /** Those who hold least come first; among them, those who have waited longest. */
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
    share(max) {
      const holder: Holder = { held: 0, max };
      return {
        acquire(timeoutMs) {
          if (!mayTake(holder)) return wait(holder, timeoutMs);
          take(holder);
          return true;
        },
        release() {
          holder.held -= 1;
          free += 1;
          serve();
        },
      };
    },
  };
}
