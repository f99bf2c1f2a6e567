// `@langchain/langgraph-checkpoint-validation`, unchanged, over the saver of workers and the checkpoints in PostgreSQL.
import { randomUUID } from 'node:crypto';
import { validate } from '@langchain/langgraph-checkpoint-validation';
import { createSaverClass } from '../../src/agent-worker/checkpoints/saver.ts';
import { createResolve } from '../../src/agent-worker/graphs/deployment-packages.ts';
import { loadLibrary } from '../../src/agent-worker/graphs/library.ts';
import { createCheckpointPort } from '../../src/platform/agent-server/checkpoints/checkpoint-port.ts';
import { createTestDatabase } from '../../test/support/platform-database.ts';

const createSaver = createSaverClass(await loadLibrary(createResolve(import.meta.dirname)));
const database = await createTestDatabase();
afterAll(() => database[Symbol.asyncDispose]());

/** The suite names threads as it likes, and those of the server are UUIDs. */
function createThreads() {
  const threads = new Map();
  const names = new Map();
  return {
    names,
    async portOf(name) {
      const found = threads.get(name);
      if (found !== undefined) return found;
      const id = /^[0-9a-f-]{36}$/.test(name) ? name : randomUUID();
      await database.store.db
        .insertInto('agent_threads')
        .values({ thread_id: id, status: 'idle', metadata: '{}', is_temporary: false })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
      const made = { id, port: createCheckpointPort(database.store, { threadId: id }) };
      threads.set(name, made);
      names.set(id, name);
      return made;
    },
  };
}

async function createCheckpointer() {
  const { names, portOf } = createThreads();
  const named = (one) => one && { ...one, thread_id: names.get(one.thread_id) };
  const saver = createSaver({
    async callServer(method, params) {
      const { id, port } = await portOf(params.thread_id);
      const result = await port.handle(method, { ...params, thread_id: id });
      return Array.isArray(result) ? result.map(named) : named(result);
    },
  });
  const list = saver.list.bind(saver);
  // A worker sees one thread; the suite lists all of them too.
  saver.list = async function* listAll(config, options) {
    const { configurable } = config;
    if (configurable?.thread_id !== undefined) return yield* list(config, options);
    let left = options?.limit ?? Infinity;
    for (const thread_id of names.values())
      for await (const tuple of list({ configurable: { ...configurable, thread_id } }, options)) {
        if (left === 0) return;
        left -= 1;
        yield tuple;
      }
  };
  return saver;
}

validate({ checkpointerName: 'agent server', createCheckpointer });
