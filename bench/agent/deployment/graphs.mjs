// The graphs that the benchmark runs on both servers. None has a model: what is measured is the server.
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({
  topic: Annotation(),
  notes: Annotation({ reducer: (one, two) => [...one, ...two], default: () => [] }),
});

const note =
  (text) =>
  async ({ topic }) => ({ notes: [`${text} ${topic}`] });

/** Three nodes, one after another. */
export const steps = new StateGraph(State)
  .addNode('plan', note('planned'))
  .addNode('write', note('written'))
  .addNode('check', note('checked'))
  .addEdge(START, 'plan')
  .addEdge('plan', 'write')
  .addEdge('write', 'check')
  .addEdge('check', END)
  .compile();

const one = (work) =>
  new StateGraph(State).addNode('work', work).addEdge(START, 'work').addEdge('work', END).compile();

/** As many events as the topic says. It awaits after each, as it would the next token of a model. */
export const events = one(async ({ topic }, { writer }) => {
  for (let n = 0; n < Number(topic); n += 1) {
    writer({ n, token: 'a word or two' });
    await undefined;
  }
  return { notes: ['emitted'] };
});

/** Waits until it is cancelled. */
export const idle = one(async (_, { signal }) => {
  const { promise, resolve } = Promise.withResolvers();
  const timer = setTimeout(resolve, 600_000);
  signal?.addEventListener('abort', resolve, { once: true });
  await promise;
  clearTimeout(timer);
  return { notes: ['waited'] };
});

/** Never lets its worker do anything else. */
export const loop = one(() => {
  for (;;);
});

/** Takes memory until its worker has none left. */
export const allocate = one(async () => {
  const taken = [];
  for (;;) {
    taken.push(Array.from({ length: 100_000 }, (_, n) => `${taken.length}-${n}`));
    await undefined;
  }
});

/** Events of 64 kB as fast as it can, until it is cancelled. */
export const emit = one(async (_, { writer, signal }) => {
  const data = 'x'.repeat(65_536);
  for (;;) {
    signal?.throwIfAborted();
    for (let n = 0; n < 16; n += 1) writer(data);
    await new Promise((resolve) => setImmediate(resolve));
  }
});
