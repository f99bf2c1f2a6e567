// The checkpoint calls of the agent server in memory, for tests of the worker side alone: what `checkpoint.*` of
// src/agent-worker/protocol/calls.ts promises, for one thread or more.
import type { CallContext } from '../../src/agent-worker/method.ts';
import type { ServerCalls, StoredCheckpoint } from '../../src/agent-worker/protocol/calls.ts';

type Handlers = {
  readonly [M in keyof ServerCalls]: (params: ServerCalls[M]['params']) => ServerCalls[M]['result'];
};
type Put = ServerCalls['checkpoint.put']['params'];
type Write = StoredCheckpoint['writes'][number];

export type MemoryCheckpoints = {
  readonly callServer: CallContext['callServer'];
  /** Every call that came, in order; behind several puts that came together, each of them. */
  readonly calls: { readonly method: string; readonly params: unknown }[];
  /** Called before each call is handled: what it throws is the result. */
  onCall: (method: string, params: unknown) => Promise<void> | void;
};

export function createMemoryCheckpoints(): MemoryCheckpoints {
  const puts: Put[] = [];
  const values = new Map<string, StoredCheckpoint['values'][number]>();
  const writes = new Map<string, Write>();
  const valueKey = (put: Put, channel: string, version: string): string =>
    JSON.stringify([put.thread_id, put.checkpoint_ns, channel, version]);
  const writePrefix = (put: { thread_id: string; checkpoint_ns: string; checkpoint_id?: string }): string =>
    JSON.stringify([put.thread_id, put.checkpoint_ns, put.checkpoint_id]);
  const read = (put: Put): StoredCheckpoint => ({
    ...put,
    values: Object.entries(put.versions).flatMap(([channel, version]) => {
      const found = values.get(valueKey(put, channel, version));
      return found === undefined ? [] : [found];
    }),
    writes: [...writes].filter(([key]) => key.startsWith(writePrefix(put))).map(([, write]) => write),
  });
  const newestFirst = (): Put[] => puts.toSorted((a, b) => (a.checkpoint_id < b.checkpoint_id ? 1 : -1));
  const handlers: Handlers = {
    'checkpoint.get': ({ thread_id, checkpoint_ns, checkpoint_id }) => {
      const found = newestFirst().find(
        (put) =>
          put.thread_id === thread_id &&
          put.checkpoint_ns === checkpoint_ns &&
          (checkpoint_id === undefined || put.checkpoint_id === checkpoint_id),
      );
      if (found === undefined || checkpoint_id === undefined) return found === undefined ? null : read(found);
      const ofNamespace = newestFirst().filter((put) => put.thread_id === thread_id);
      const latest = ofNamespace.find((put) => put.checkpoint_ns === checkpoint_ns) ?? found;
      return { ...read(found), latest_checkpoint_id: latest.checkpoint_id };
    },
    'checkpoint.list': ({ thread_id, checkpoint_ns, checkpoint_id, before, limit, filter }) =>
      newestFirst()
        .filter((put) => put.thread_id === thread_id)
        .filter((put) => checkpoint_ns === undefined || put.checkpoint_ns === checkpoint_ns)
        .filter((put) => checkpoint_id === undefined || put.checkpoint_id === checkpoint_id)
        .filter((put) => before === undefined || put.checkpoint_id < before)
        .filter((put) =>
          Object.entries(filter ?? {}).every(([key, value]) => put.searched_metadata[key] === value),
        )
        .slice(0, Math.min(limit ?? 100, 100))
        .map(read),
    'checkpoint.put': (put) => {
      const index = puts.findIndex(
        ({ thread_id, checkpoint_ns, checkpoint_id }) =>
          writePrefix({ thread_id, checkpoint_ns, checkpoint_id }) === writePrefix(put),
      );
      puts.splice(index === -1 ? puts.length : index, index === -1 ? 0 : 1, put);
      for (const value of put.values) {
        const key = valueKey(put, value.channel, value.version);
        if (!values.has(key)) values.set(key, value);
      }
      return null;
    },
    'checkpoint.put_writes': ({ task_id, writes: written, ...place }) => {
      for (const write of written) {
        const key = `${writePrefix(place)}${JSON.stringify([task_id, write.idx])}`;
        if (write.idx < 0 || !writes.has(key)) writes.set(key, { task_id, ...write });
      }
      return null;
    },
    'checkpoint.put_all': ({ thread_id, puts: all, put_writes: allWrites }) => {
      for (const put of all) handlers['checkpoint.put']({ ...put, thread_id });
      for (const one of allWrites) handlers['checkpoint.put_writes']({ ...one, thread_id });
      return null;
    },
    'checkpoint.delete_thread': ({ thread_id }) => {
      for (let index = puts.length - 1; index >= 0; index -= 1) {
        if (puts[index]?.thread_id === thread_id) puts.splice(index, 1);
      }
      return null;
    },
    'checkpoint.copy_thread': () => null,
  };
  const memory: MemoryCheckpoints = {
    calls: [],
    onCall: () => {},
    async callServer(method, params) {
      memory.calls.push({ method, params }, ...partsOf(method, params));
      await memory.onCall(method, params);
      // As if it had been sent: later than this turn of the event loop, and nothing is shared with the graph.
      await new Promise(setImmediate);
      return handlers[method](structuredClone(params));
    },
  };
  return memory;
}

/** What was sent together, as if each had come by itself. */
function partsOf(method: string, params: unknown): MemoryCheckpoints['calls'] {
  if (method !== 'checkpoint.put_all') return [];
  const { thread_id, puts, put_writes: all } = params as ServerCalls['checkpoint.put_all']['params'];
  return [
    ...puts.map((put) => ({ method: 'checkpoint.put', params: { ...put, thread_id } })),
    ...all.map((one) => ({ method: 'checkpoint.put_writes', params: { ...one, thread_id } })),
  ];
}
