// What a saver has sent and the server has not stored yet. A graph does not wait for it; the end
// of its run does, and so does an interrupt before it is sent.

export type PutTracker = {
  track(put: () => Promise<unknown>): Promise<void>;
  /** Resolves when nothing is on its way. */
  stored(): Promise<void>;
  /** Resolves when everything is stored; what comes later is refused. */
  end(): Promise<void>;
};

/**
 * `onFailure` is called instead of a rejection, and what follows is left out. The library leaves some of its promises to nobody,
 * and a rejection without a handler ends the process with all its runs.
 */
export function createPutTracker(onFailure: ((error: unknown) => void) | undefined): PutTracker {
  const pending = new Set<Promise<unknown>>();
  let hasEnded = false;
  let hasFailed = false;
  const stored = async (): Promise<void> => {
    for (;;) {
      // The library puts one checkpoint after the other, and the last of a cancelled graph when its stream has ended already.
      await new Promise(setImmediate);
      if (pending.size === 0) return;
      await Promise.allSettled(pending);
    }
  };
  return {
    stored,
    async track(put) {
      if (hasFailed) return;
      const done = hasEnded ? refuse() : put();
      pending.add(done);
      try {
        await done;
      } catch (error) {
        if (onFailure === undefined) throw error;
        hasFailed = true;
        onFailure(error);
      } finally {
        pending.delete(done);
      }
    },
    async end() {
      await stored();
      hasEnded = true;
    },
  };
}

async function refuse(): Promise<never> {
  throw new Error('The call that this graph ran for has ended: nothing is stored any more.');
}
