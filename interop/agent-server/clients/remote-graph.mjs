// `RemoteGraph` of `@langchain/langgraph`, unchanged, against the URL in the first argument: alone and as a node of a local graph.
import { Annotation, Command, MemorySaver, RemoteException, START, StateGraph } from '@langchain/langgraph';
import { RemoteGraph } from '@langchain/langgraph/remote';
import { Client } from '@langchain/langgraph-sdk';
import { all, end, equal, ok, test } from './report.mjs';

const url = process.argv[2];
const client = new Client({ apiUrl: url, apiKey: null, callerOptions: { maxRetries: 0 } });
const remote = (graphId) => new RemoteGraph({ graphId, client });
const onThread = async () => ({ configurable: { thread_id: (await client.threads.create()).thread_id } });

await test('invoke, without a thread and on one', async () => {
  equal((await remote('steps').invoke({})).trail, ['one', 'two', 'three']);
  equal((await remote('steps').invoke({ count: 1 }, await onThread())).count, 4);
});
await test('stream of updates and values', async () => {
  equal(
    (await all(await remote('steps').stream({}, { streamMode: 'updates' }))).map(
      (one) => Object.keys(one)[0],
    ),
    ['one', 'two', 'three'],
  );
  equal((await all(await remote('steps').stream({}, { streamMode: ['values'] }))).at(-1)[1].count, 3);
});
await test('stream of subgraphs', async () => {
  const seen = await all(await remote('nested').stream({}, { streamMode: 'updates', subgraphs: true }));
  ok(
    seen.some(([namespace]) => namespace[0]?.startsWith('inside:')),
    JSON.stringify(seen),
  );
});
await test('getState, getStateHistory and updateState', async () => {
  const config = await onThread();
  const graph = remote('steps');
  await graph.invoke({}, config);
  equal((await graph.getState(config)).values.count, 3);
  ok((await all(graph.getStateHistory(config, { limit: 3 }))).length === 3, 'another length');
  await graph.updateState(config, { trail: ['hand'] }, 'one');
  equal((await graph.getState(config)).next, ['two']);
});
await test('getGraphAsync', async () => {
  const drawn = await remote('nested').getGraphAsync({ xray: true });
  ok(Object.keys(drawn.nodes).includes('inside:deep'), Object.keys(drawn.nodes).join());
});
await test('a question, and the decision by a command', async () => {
  const config = await onThread();
  const graph = remote('approval');
  // It throws the interrupt, as an inner graph does.
  const thrown = await graph.invoke({ request: 'r' }, config).catch((error) => error);
  equal(thrown.interrupts?.[0]?.value, { question: 'r' });
  equal((await graph.getState(config)).next, ['ask']);
  equal((await graph.invoke(new Command({ resume: 'yes' }), config)).decision, 'approved');
});
await test('an error of the graph is thrown', async () => {
  const error = await remote('failing')
    .invoke({})
    .then(
      () => undefined,
      (thrown) => thrown,
    );
  ok(error instanceof RemoteException || /Boo!/.test(String(error)), String(error));
});
await test('as a node of a local graph', async () => {
  const State = Annotation.Root({
    trail: Annotation({ reducer: (_, two) => two, default: () => [] }),
    count: Annotation(),
  });
  const local = new StateGraph(State)
    .addNode('remote', remote('steps'))
    .addEdge(START, 'remote')
    .compile({ checkpointer: new MemorySaver() });
  const { trail } = await local.invoke({ count: 0 }, await onThread());
  equal(trail, ['one', 'two', 'three']);
});
end();
