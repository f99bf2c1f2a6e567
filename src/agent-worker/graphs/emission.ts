// The pace of a graph. The library keeps what a graph streams until it is read, drops what is not read when the graph fails, and
// never waits: so everything is read at once, and while the server takes no more events, nodes, models and tools that would
// start wait.

export type Emission = {
  /** For the callbacks of a run. It also asks chat models to stream, as clients of the public server see them. */
  readonly handler: object;
  /** What the graph streams, in order; its failure comes after everything. Leaving the loop ends the graph. */
  read<T>(stream: AsyncIterable<T>): AsyncGenerator<T>;
  /** Waits until the server takes more. */
  send(emitting: Promise<void>): Promise<void>;
  /** Lets everything go on. */
  end(): void;
};

/** Of one run, while others wait. */
const MAX_TURN_MS = 20;
const MAX_BACKLOG = 64;

export function createEmission(): Emission {
  let behind: PromiseWithResolvers<void> | undefined;
  let turnedAt = performance.now();
  const fallBehind = (): void => {
    behind ??= Promise.withResolvers();
  };
  const wait = async (): Promise<void> => {
    await behind?.promise;
    // Steps that wait for nothing would keep other runs, and what the server says, from their turn.
    if (performance.now() - turnedAt < MAX_TURN_MS) return;
    await new Promise(setImmediate);
    turnedAt = performance.now();
  };
  const catchUp = (): void => {
    behind?.resolve();
    behind = undefined;
  };
  return {
    handler: createHandler(wait),
    read: (stream) => readAtOnce(stream, { onBacklog: fallBehind, onDrained: catchUp }),
    async send(emitting) {
      // As long as the server takes events, this is before the next turn of the event loop.
      const late = setImmediate(fallBehind);
      try {
        await emitting;
      } finally {
        clearImmediate(late);
      }
    },
    end: catchUp,
  };
}

function createHandler(wait: () => Promise<void>): object {
  return {
    name: 'agent_worker_emission',
    awaitHandlers: true,
    lc_prefer_streaming: true,
    handleChainStart: wait,
    handleChatModelStart: wait,
    handleLLMStart: wait,
    handleLLMNewToken: wait,
    handleToolStart: wait,
    handleRetrieverStart: wait,
  };
}

type Watch = { onBacklog(): void; onDrained(): void };

async function* readAtOnce<T>(stream: AsyncIterable<T>, { onBacklog, onDrained }: Watch): AsyncGenerator<T> {
  const iterator = stream[Symbol.asyncIterator]();
  let items: T[] = [];
  let wakeUp = Promise.withResolvers<void>();
  let isOver = false;
  const pump = async (): Promise<void> => {
    try {
      for (;;) {
        const { done, value } = await iterator.next();
        if (done === true) return;
        items.push(value);
        if (items.length > MAX_BACKLOG) onBacklog();
        wakeUp.resolve();
      }
    } finally {
      isOver = true;
      wakeUp.resolve();
    }
  };
  const pumping = pump();
  // Its failure is reported below, after what came before it.
  pumping.catch(() => {});
  try {
    for (;;) {
      const batch = items;
      items = [];
      yield* batch;
      if (items.length > 0) continue;
      onDrained();
      if (isOver) return await pumping;
      await wakeUp.promise;
      wakeUp = Promise.withResolvers();
    }
  } finally {
    if (!isOver) await iterator.return?.();
  }
}
