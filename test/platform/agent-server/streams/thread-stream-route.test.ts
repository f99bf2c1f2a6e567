// GET /threads/{thread_id}/stream, as the public client and a bare one read it.
import { randomUUID } from 'node:crypto';
import { Client } from '@langchain/langgraph-sdk';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { anyone } from '../../../../src/platform/api/access.ts';
import { compileFilter } from '../../../../src/platform/agent-server/access/filters.ts';
import type { Gate } from '../../../../src/platform/agent-server/access/gate.ts';
import { createThreadStreamRoute } from '../../../../src/platform/agent-server/streams/thread-stream-route.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { get, openStreams, type StreamScene } from '../../api/stream/stream-scene.ts';
import { createRun, numbered, startProcess, type TestProcess } from './streams-scene.ts';

let database: TestDatabase;
let process: TestProcess;
let scene: StreamScene;
/** What the caller may see. */
let visible: Awaited<ReturnType<Gate['authorize']>>['filter'];

beforeAll(async () => {
  database = await createTestDatabase();
  process = await startProcess(database);
  const access = {
    ...anyone,
    recall: () => undefined,
    enter: async () => ({ user: undefined, isStudio: false, headers: {} }),
    confirm: async () => ({ user: undefined, isStudio: false, headers: {} }),
  };
  const gate: Gate = {
    ...{ access, appAccess: access },
    authorize: async (_, __, value) => ({ filter: visible, value }),
  };
  scene = await openStreams([createThreadStreamRoute({ gate, streams: process.streams })], {}, process.store);
});
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await process?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

it('gives the public client the runs of the thread', async () => {
  const { runId, threadId } = await createRun(process.store, { isResumable: true });
  const writer = await process.streams.open(await process.claim(runId));
  const client = new Client({ apiUrl: `http://127.0.0.1:${scene.port}`, apiKey: null });
  const stream = client.threads.joinStream(threadId, { lastEventId: '-1' });
  expect((await stream.next()).value).toMatchObject({
    event: 'metadata',
    data: { run_id: runId, attempt: 1 },
  });
  await writer.write(numbered(0, 1));
  expect((await stream.next()).value).toMatchObject({ event: 'custom', data: 0 });
  await process.finish(runId);
  await writer.end();
  expect((await stream.next()).value).toMatchObject({ event: 'metadata', data: { status: 'run_done' } });
  await stream.return(undefined);
});

it.each([
  ['of no thread', '', 404],
  ['of a thread that is hidden', 'hidden', 404],
  ['of a malformed id', 'malformed', 422],
  ['in an unknown mode', 'mode', 422],
])('refuses the stream %s before it begins', async (_, kind, status) => {
  const { threadId } = await createRun(process.store);
  visible = kind === 'hidden' ? compileFilter({ owner: 'another' }) : undefined;
  const id = kind === '' ? randomUUID() : kind === 'malformed' ? 'x' : threadId;
  await using client = await scene.connect();
  await client.send(get(`/threads/${id}/stream${kind === 'mode' ? '?stream_modes=runs' : ''}`));
  expect((await client.readResponse()).head.status).toBe(status);
  visible = undefined;
});

it('takes each way in which clients name the modes', async () => {
  const { runId, threadId } = await createRun(process.store, { isResumable: true });
  const writer = await process.streams.open(await process.claim(runId));
  await writer.write(numbered(0, 1));
  await process.finish(runId);
  await writer.end();
  for (const query of ['?stream_mode=lifecycle', '?stream_modes=lifecycle&stream_modes=state_update']) {
    await using client = await scene.connect();
    await client.send(get(`/threads/${threadId}/stream${query}`, 'Last-Event-ID: -1'));
    const text = await client.readThrough('run_done');
    expect(text).toContain('event: metadata\ndata: {"run_id"');
    expect(text).not.toContain('custom');
    client.reset();
  }
});

it.each([
  ['', ''],
  ['?stream_mode=lifecycle', '?stream_modes=lifecycle'],
])('names where a client goes on that was cut, with its modes%s', async (query, again) => {
  const { threadId } = await createRun(process.store);
  await using client = await scene.connect();
  await client.send(get(`/threads/${threadId}/stream${query}`));
  const { headers } = await client.readHead();
  expect(headers.find(([name]) => name.toLowerCase() === 'location')?.[1]).toBe(
    `/threads/${threadId}/stream${again}`,
  );
  client.reset();
});
