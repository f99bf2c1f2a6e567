// A resumable run whose process is killed while the public client reads it: another process executes it further, and the client
// goes on there without a gap or a repetition.
import { join } from 'node:path';
import { Client } from '@langchain/langgraph-sdk';
import { expect, it } from 'vitest';
import { startAgentServer, writeDeployment } from '../../../support/agent-process.ts';
import { createTestDatabase } from '../../../support/platform-database.ts';
import { createScratch } from '../../../support/scratch.ts';

const GRAPH = `
import { Annotation, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ steps: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }) });
const step = async () => {
  await new Promise((resolve) => setTimeout(resolve, 200));
  return { steps: 1 };
};
export const graph = new StateGraph(State)
  .addNode('step', step)
  .addEdge('__start__', 'step')
  .addConditionalEdges('step', ({ steps }) => (steps < 10 ? 'step' : '__end__'))
  .compile();
`;

it('is read on in another process', { tags: 'long', timeout: 60_000 }, async () => {
  await using database = await createTestDatabase();
  await using scratch = await createScratch();
  const config = await writeDeployment(
    join(scratch.path, 'deployment'),
    { graphs: { agent: './graph.ts:graph' } },
    { 'graph.ts': GRAPH },
  );
  // They share the master key.
  const dataDirectory = join(scratch.path, 'data');
  const start = () => startAgentServer(config, { dataDirectory, database });
  await using first = start();
  const { url } = await first.ready;
  await using second = start();
  const other = await second.ready;
  const clients = [url, other.url].map(
    (apiUrl) => new Client({ apiUrl, apiKey: null, callerOptions: { maxRetries: 0 } }),
  );
  const [here, there] = clients as [Client, Client];
  const { thread_id: threadId } = await here.threads.create();
  const run = { input: { steps: 0 }, streamMode: 'values' as const, streamResumable: true };
  const events: { id?: string | undefined; event: string; data: unknown }[] = [];
  for await (const event of here.runs.stream(threadId, 'agent', run)) {
    events.push(event);
    if (events.length === 4) break;
  }
  first.process.kill('SIGKILL');
  const { run_id: runId } = (events[0]?.data ?? {}) as { run_id: string };
  const lastEventId = events.at(-1)?.id ?? '';
  for await (const event of there.runs.joinStream(threadId, runId, { lastEventId })) events.push(event);
  expect(events.map(({ id }) => Number(id))).toEqual(events.map((_, index) => index));
  const attempts = events.filter(({ event }) => event === 'metadata').map(({ data }) => data);
  expect(attempts).toEqual([
    { run_id: runId, attempt: 1 },
    { run_id: runId, attempt: 2 },
  ]);
  expect(events.at(-1)?.data).toEqual({ steps: 10 });
});
