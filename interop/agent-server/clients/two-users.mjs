// `@langchain/langgraph-sdk`, unchanged, by two users of the deployment's own authentication, against the URL in the first argument.
import { randomUUID } from 'node:crypto';
import { Client } from '@langchain/langgraph-sdk';
import { all, end, equal, ok, statusOf, test } from './report.mjs';

const apiUrl = process.argv[2];
const as = (token) =>
  new Client({
    apiUrl,
    apiKey: null,
    defaultHeaders: token ? { authorization: `Bearer ${token}` } : {},
    callerOptions: { maxRetries: 0 },
  });
const [ann, bob, nobody] = [as('token-of-ann'), as('token-of-bob'), as('wrong')];

await test('without a token and with a wrong one: 401, with the headers of the handler', async () => {
  equal(await statusOf(() => nobody.threads.search()), 401);
  const response = await fetch(`${apiUrl}/threads/search`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  equal([response.status, response.headers.get('x-reason')], [401, 'token']);
  equal((await fetch(`${apiUrl}/info`)).status, 200);
});
let thread;
await test('a thread belongs to its owner', async () => {
  thread = await ann.threads.create();
  equal(thread.metadata.owner, 'ann');
  const id = thread.thread_id;
  equal(await statusOf(() => bob.threads.get(id)), 404);
  equal(await statusOf(() => bob.threads.update(id, { metadata: { owner: 'bob' } })), 404);
  equal(await statusOf(() => bob.threads.getState(id)), 404);
  equal(await statusOf(() => bob.threads.getHistory(id)), 404);
  equal(await statusOf(() => bob.threads.copy(id)), 409);
  equal(await statusOf(() => bob.threads.delete(id)), 404);
});
await test('searches and counts have the own threads only', async () => {
  await bob.threads.create();
  equal(
    (await ann.threads.search({ limit: 100 })).every(({ metadata }) => metadata.owner === 'ann'),
    true,
  );
  equal(await bob.threads.count(), 1);
});
await test('runs on the thread of another', async () => {
  const id = thread.thread_id;
  ok([403, 404].includes(await statusOf(() => bob.runs.wait(id, 'steps', { input: {} }))), 'it ran');
  const run = await ann.runs.create(id, 'steps', { input: {} });
  await ann.runs.join(id, run.run_id);
  equal(await statusOf(() => bob.runs.get(id, run.run_id)), 404);
  const seen = await all(bob.runs.joinStream(id, run.run_id)).catch((error) => [
    { event: 'error', data: String(error) },
  ]);
  ok(!JSON.stringify(seen).includes('trail'), JSON.stringify(seen));
  equal(await statusOf(() => bob.runs.cancel(id, run.run_id)), 404);
  equal(await statusOf(() => bob.runs.delete(id, run.run_id)), 404);
});
await test('the graph knows its user', async () => {
  const { seen } = await ann.runs.wait(null, 'report', { input: {} });
  equal([seen.identity, seen.userId, seen.permissions], ['ann', 'ann', ['write']]);
});
await test('a handler that refuses: 403', async () => {
  const { assistant_id: id } = await bob.assistants.create({ graphId: 'steps', assistantId: randomUUID() });
  equal(await statusOf(() => bob.assistants.delete(id)), 403);
});
end();
