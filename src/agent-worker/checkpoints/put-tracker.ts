// What a saver has put and the server has not stored yet. A graph does not wait for it; the end
// of its run does, and so does an interrupt before it is sent.
import type { CallContext } from '../method.ts';
import { createPutQueue, type Put, type PutWrites } from './put-queue.ts';

export type PutTracker = {
  /** Resolve when it is stored, or where the graph waits for nothing, at once. */
  put(write: () => Promise<Put>): Promise<void>;
  /** `before` is stored before it. */
  putWrites(write: () => Promise<PutWrites>, before?: () => Promise<PutWrites>): Promise<void>;
  /** What follows finds what was put before with the server. */
  flush(): void;
  /** Resolves when nothing is on its way. */
  stored(): Promise<void>;
  /** Resolves when everything is stored; what comes later is refused. */
  end(): Promise<void>;
};

export type PutParts = {
  readonly callServer: CallContext['callServer'];
  /** How long what is put may wait for what follows it, for a graph that does not wait for it; 0 when absent. */
  readonly delayMs?: number;
  /**
   * Called once instead of a rejection, and what follows is left out. The library leaves some of its promises to nobody,
   * and a rejection without a handler ends the process with all its runs.
   */
  onFailure?(error: unknown): void;
};

export function createPutTracker({ callServer, delayMs = 0, onFailure }: PutParts): PutTracker {
  const queue = createPutQueue(callServer, delayMs);
  // The library puts a checkpoint when the one before is stored, and ends when all are.
  const isAwaited = delayMs === 0 || onFailure === undefined;
  const pending = new Set<Promise<unknown>>();
  let hasEnded = false;
  let hasFailed = false;
  const allStored = async (): Promise<void> => {
    for (;;) {
      // The library puts one checkpoint after the other, and the last of a cancelled graph when its stream has ended already.
      await new Promise(setImmediate);
      if (pending.size === 0) return;
      await Promise.allSettled(pending);
    }
  };
  const follow = async (done: Promise<unknown>): Promise<void> => {
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
  };
  const track = async (put: () => Promise<unknown>): Promise<void> => {
    if (hasFailed) return;
    const following = follow(hasEnded ? refuse() : put());
    // What a graph has streamed is read before its next step, which may fail: the library drops what is not read then.
    await (isAwaited ? following : new Promise(setImmediate));
  };
  return {
    put: (write) => track(async () => queue.put(await write())),
    putWrites: (write, before) =>
      track(async () => {
        if (before !== undefined) {
          const stored = queue.putWrites(await before());
          queue.flush();
          await stored;
        }
        await queue.putWrites(await write());
      }),
    flush: () => queue.flush(),
    async stored() {
      const rest = queue.hurry();
      await allStored();
      rest();
    },
    async end() {
      queue.hurry();
      await allStored();
      hasEnded = true;
    },
  };
}

async function refuse(): Promise<never> {
  throw new Error('The call that this graph ran for has ended: nothing is stored any more.');
}
