// The steps that the reconciler takes: one at a time for each box, and a few at a time for all. One that takes long stops counting, so
// that a sidecar that does not respond does not hold up the boxes of others.

export type QueuedStep = {
  readonly id: string;
  /** Never rejects. Resolves with whether the box should be looked at again at once. */
  readonly work: () => Promise<boolean>;
};

export type StepQueue = {
  /** What was decided and has not begun is dropped, to be decided anew. Returns the boxes with a step in progress. */
  clear(): ReadonlySet<string>;
  /** The boxes whose last step is the longest ago come first. */
  replace(steps: readonly QueuedStep[]): void;
  /** Begins nothing any more, and resolves when nothing is in progress. */
  close(): Promise<void>;
};

/** A step that takes longer waits for something else. */
const SLOW_MS = 1_000;
/** Slow ones included. */
const MAX_STEPS = 512;

export function createStepQueue(options: {
  readonly concurrency: number;
  readonly slowMs?: number;
  onOpen(): void;
}): StepQueue {
  const { concurrency, slowMs = SLOW_MS, onOpen } = options;
  const running = new Map<string, Promise<void>>();
  let waiting: QueuedStep[] = [];
  /** In the order of their last steps, the latest last. */
  let taken = new Set<string>();
  const quick = new Set<QueuedStep>();
  const fill = (): void => {
    while (waiting.length > 0 && quick.size < concurrency && running.size < MAX_STEPS) {
      const next = waiting.shift();
      if (next !== undefined && !running.has(next.id)) begin(next);
    }
  };
  const begin = (step: QueuedStep): void => {
    const { id, work } = step;
    quick.add(step);
    const timer = setTimeout(() => {
      quick.delete(step);
      fill();
    }, slowMs);
    timer.unref();
    taken.delete(id);
    taken.add(id);
    const end = (isOpen: boolean): void => {
      clearTimeout(timer);
      running.delete(id);
      quick.delete(step);
      if (isOpen) onOpen();
      fill();
    };
    running.set(id, work().then(end));
  };
  return {
    clear() {
      waiting = [];
      return new Set(running.keys());
    },
    replace(steps) {
      const order = new Map([...taken].map((id, at) => [id, at]));
      const place = ({ id }: QueuedStep): number => order.get(id) ?? -1;
      waiting = steps.toSorted((one, other) => place(one) - place(other));
      const wanted = new Set(steps.map(({ id }) => id));
      taken = new Set([...taken].filter((id) => wanted.has(id) || running.has(id)));
      fill();
    },
    async close() {
      waiting = [];
      await Promise.all(running.values());
    },
  };
}
