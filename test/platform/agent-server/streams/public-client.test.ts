// Streams of runs as the public client reads them: what it makes of a cut connection, of a drain, of a run that is hidden.
import { Client } from '@langchain/langgraph-sdk';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DomainError } from '../../../../src/base/domain-error.ts';
import { EndedEarly } from '../../../../src/base/http/http-response.ts';
import { z } from '../../../../src/base/schema.ts';
import { anyone } from '../../../../src/platform/api/access.ts';
import { eventStream } from '../../../../src/platform/api/responses.ts';
import { defineRoute, type Route } from '../../../../src/platform/api/route.ts';
import type { ServerEvents } from '../../../../src/platform/api/stream/event-stream.ts';
import { streamRun } from '../../../../src/platform/agent-server/streams/run-events.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { openStreams } from '../../api/stream/stream-scene.ts';
import { createRun, numbered, startProcess, type TestProcess } from './streams-scene.ts';

let database: TestDatabase;
let process: TestProcess;

beforeAll(async () => {
  database = await createTestDatabase();
  process = await startProcess(database);
});
afterAll(async () => {
  await process?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

type Passing = (events: AsyncIterable<ServerEvents>) => AsyncIterable<ServerEvents>;

/** The join of a run, as the routes of runs serve it; `pass` may cut the connection. */
function joinRoute(pass: Passing, hidden?: string): Route {
  return defineRoute({
    ...{ method: 'GET', path: '/threads/{thread_id}/runs/{run_id}/stream', tag: 'Runs', summary: 'Join' },
    ...{ access: anyone, tracking: { untracked: 'a test' } },
    params: z.object({ thread_id: z.uuid(), run_id: z.uuid() }),
    responses: { 200: eventStream({ onDrain: 'cut' }) },
    async handle({ params: { thread_id, run_id } }) {
      if (run_id === hidden) throw new DomainError('not_found', 'There is no such run');
      return { fields: { Location: `/threads/${thread_id}/runs/${run_id}/stream` } };
    },
    stream: ({ params, signal, lastEventId }) =>
      pass(streamRun(process.streams, { runId: params.run_id, lastEventId, signal })),
  });
}

const clientOf = ({ port }: { readonly port: number }): Client =>
  new Client({ apiUrl: `http://127.0.0.1:${port}`, apiKey: null, callerOptions: { maxRetries: 0 } });

it('goes on after its connection was cut, without a gap or a repetition', async () => {
  const { runId, threadId } = await createRun(process.store, { isResumable: true });
  const cuts = [3];
  async function* cutAfter(events: AsyncIterable<ServerEvents>): AsyncGenerator<ServerEvents> {
    let left = cuts.shift() ?? Infinity;
    for await (const batch of events)
      for (const event of [batch].flat()) {
        if (left === 0) throw new EndedEarly('a test');
        left -= 1;
        yield event;
      }
  }
  await using scene = await openStreams([joinRoute(cutAfter)]);
  const writer = await process.streams.open(await process.claim(runId));
  await writer.write(numbered(0, 8));
  await process.finish(runId);
  await writer.end();
  const ids: (string | undefined)[] = [];
  for await (const { id } of clientOf(scene).runs.joinStream(threadId, runId, { lastEventId: '-1' }))
    ids.push(id);
  expect(ids).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8']);
  expect(cuts).toEqual([]);
});

it('learns by a 404 that it may not read a run', async () => {
  const { runId, threadId } = await createRun(process.store);
  await using scene = await openStreams([joinRoute((events) => events, runId)]);
  await expect(clientOf(scene).runs.joinStream(threadId, runId).next()).rejects.toThrow('404');
});
