// The runs of a thread as one stream, in the process that executes them and in another one.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServerEvent } from '../../../../src/platform/api/stream/event-stream.ts';
import {
  streamThread,
  type ThreadToStream,
} from '../../../../src/platform/agent-server/streams/thread-stream.ts';
import { EndedEarly } from '../../../../src/base/http/http-response.ts';
import { compileFilter } from '../../../../src/platform/agent-server/access/filters.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { createRun, numbered, startProcess, type TestProcess } from './streams-scene.ts';

let database: TestDatabase;
let first: TestProcess;
let second: TestProcess;

beforeAll(async () => {
  database = await createTestDatabase();
  [first, second] = await Promise.all([startProcess(database), startProcess(database)]);
});
afterAll(async () => {
  await first?.[Symbol.asyncDispose]();
  await second?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

/** Reads a thread until it is stopped. */
function follow(
  { streams, store }: TestProcess,
  over: Partial<ThreadToStream> & { readonly threadId: string },
) {
  const left = new AbortController();
  const modes = new Set(['run_modes'] as const);
  const call = { modes, lastEventId: undefined, signal: left.signal, ...over };
  const { db, started } = watchStart(store.db);
  const stream = streamThread({ db, streams }, call);
  const seen: ServerEvent[] = [];
  return {
    ...{ seen, started },
    /** Until so many runs are done. */
    async readRuns(count: number): Promise<string[]> {
      while (seen.filter(isDone).length < count) {
        const { value, done } = await stream.next();
        if (done === true) break;
        seen.push(...value);
      }
      return seen.map(({ event, text, data }) => `${event} ${text ?? JSON.stringify(data)}`);
    },
    async stop(): Promise<void> {
      const next = stream.next();
      left.abort();
      expect((await next).done).toBe(true);
    },
  };
}

/** `started`: the reader asks for its runs, and knows by then where it begins. */
function watchStart(db: TestProcess['store']['db']) {
  const { promise: started, resolve } = Promise.withResolvers<void>();
  const selectFrom = (table: never) => {
    if (table === 'agent_threads') resolve();
    return db.selectFrom(table);
  };
  return { db: { selectFrom } as unknown as Pick<typeof db, 'selectFrom'>, started };
}

const isDone = ({ data }: ServerEvent): boolean => data !== undefined;

async function execute(process: TestProcess, runId: string, count: number): Promise<void> {
  const writer = await process.streams.open(await process.claim(runId));
  await writer.write(numbered(0, count));
  await process.finish(runId);
  await writer.end();
}

const linesOf = (runId: string, count: number): string[] => [
  `metadata {"run_id":"${runId}","attempt":1}`,
  ...Array.from({ length: count }, (_, index) => `custom ${index}`),
  `metadata {"status":"run_done","run_id":"${runId}"}`,
];

describe.each([
  ['here', () => first],
  ['in another process', () => second],
])('runs that are executed %s', (_, executing) => {
  it('come one after another, from the first that has not ended', async () => {
    const ended = await createRun(first.store);
    const { threadId } = ended;
    await execute(executing(), ended.runId, 1);
    const waiting = await createRun(first.store, { threadId });
    const reader = follow(first, { threadId });
    const read = reader.readRuns(2);
    await reader.started;
    // It has said in both processes that it follows the thread.
    await notified(first, second);
    await execute(executing(), waiting.runId, 3);
    const next = await createRun(first.store, { threadId });
    await execute(executing(), next.runId, 2);
    expect(await read).toEqual([...linesOf(waiting.runId, 3), ...linesOf(next.runId, 2)]);
    await reader.stop();
  });
});

/** Resolves when what the one has sent before has arrived at the other. */
async function notified(from: TestProcess, to: TestProcess): Promise<void> {
  const { runId } = await createRun(from.store);
  const { promise, resolve } = Promise.withResolvers<void>();
  const unsubscribe = to.notices.subscribe({
    onNotice: (notice) => ('runId' in notice && notice.runId === runId ? resolve() : undefined),
    onMissed: () => undefined,
  });
  // After the first question of the reader.
  await new Promise(setImmediate);
  from.notices.send({ kind: 'cancel', runId });
  await promise;
  unsubscribe();
}

it('goes on after the last event that the client has', async () => {
  const one = await createRun(first.store, { isResumable: true });
  const two = await createRun(first.store, { threadId: one.threadId, isResumable: true });
  await execute(first, one.runId, 2);
  await execute(first, two.runId, 2);
  const all = follow(second, { threadId: one.threadId, lastEventId: '-1' });
  const lines = await all.readRuns(2);
  expect(lines).toEqual([...linesOf(one.runId, 2), ...linesOf(two.runId, 2)]);
  await all.stop();
  for (const [index, { id }] of all.seen.entries()) {
    if (index === lines.length - 1) break;
    const again = follow(second, { threadId: one.threadId, lastEventId: id });
    const done = all.seen.slice(index + 1).filter(isDone).length;
    expect(await again.readRuns(done)).toEqual(lines.slice(index + 1));
    await again.stop();
  }
});

it('ends when the thread is that of somebody else', async () => {
  const { runId, threadId } = await createRun(first.store);
  const setOwner = (owner: string) =>
    sql`update agent_threads set metadata = ${JSON.stringify({ owner })} where thread_id = ${threadId}`.execute(
      first.store.db,
    );
  await setOwner('eve');
  const reader = follow(first, { threadId, filter: compileFilter({ owner: 'eve' }) });
  const read = reader.readRuns(2);
  await notified(first, second);
  await execute(first, runId, 1);
  // As if eve had deleted it, and ada had created it with the same id.
  await setOwner('ada');
  const { runId: next } = await createRun(first.store, { threadId });
  await execute(first, next, 1);
  expect((await read).join()).not.toContain(next);
});

it('has no ids that tell of runs elsewhere', async () => {
  const { runId, threadId } = await createRun(first.store, { isResumable: true });
  await execute(first, runId, 1);
  const reader = follow(first, { threadId, lastEventId: '-1' });
  await reader.readRuns(1);
  expect(reader.seen.map(({ id }) => id)).toEqual([`${runId}.0`, `${runId}.1`, `${runId}.`]);
  await reader.stop();
});

it('goes on after a run that is gone', async () => {
  const { runId, threadId } = await createRun(first.store, { isResumable: true });
  await execute(first, runId, 1);
  const reader = follow(first, { threadId, lastEventId: '00000000-0000-7000-8000-000000000000.3' });
  expect(await reader.readRuns(1)).toEqual(linesOf(runId, 1));
  await reader.stop();
});

it('has the beginnings and ends of runs alone in the mode lifecycle', async () => {
  const { runId, threadId } = await createRun(first.store);
  const reader = follow(first, { threadId, modes: new Set(['lifecycle']) });
  const read = reader.readRuns(1);
  await notified(first, second);
  await execute(first, runId, 3);
  const [start, end] = [linesOf(runId, 3)[0], linesOf(runId, 3).at(-1)];
  expect(await read).toEqual([start, end]);
  await reader.stop();
});

it('goes on behind a scheduled run, however many have ended since, and comes back to it', async () => {
  const behind = 1001;
  const scheduled = await createRun(first.store);
  const { threadId } = scheduled;
  const { db } = first.store;
  await sql`
    insert into agent_runs (run_id, thread_id, assistant_id, assistant_version, graph_id, kwargs, multitask_strategy,
      status, ended_at)
    select gen_random_uuid(), thread_id, assistant_id, 1, 'agent', '{}', 'enqueue', 'success', now()
    from agent_runs, generate_series(1, ${behind}::int) where run_id = ${scheduled.runId}`.execute(db);
  const reader = follow(first, { threadId });
  const next = await createRun(first.store, { threadId });
  const read = reader.readRuns(1);
  await reader.started;
  await execute(first, next.runId, 1);
  await read;
  await execute(first, scheduled.runId, 1);
  expect(await reader.readRuns(2)).toEqual([...linesOf(next.runId, 1), ...linesOf(scheduled.runId, 1)]);
  await reader.stop();
});

describe('in a process that is replaced', () => {
  it('is cut at once where no run has begun, and another process goes on from its last event', async () => {
    await using replaced = await startProcess(database);
    const { runId, threadId } = await createRun(first.store, { isResumable: true });
    await execute(first, runId, 1);
    const reader = follow(replaced, { threadId, lastEventId: '-1' });
    const lines = await reader.readRuns(1);
    const cut = expect(reader.readRuns(2)).rejects.toThrow(EndedEarly);
    replaced.streams.retire();
    await cut;
    const next = await createRun(first.store, { threadId, isResumable: true });
    const again = follow(second, { threadId, lastEventId: reader.seen.at(-1)?.id });
    const rest = again.readRuns(1);
    await execute(first, next.runId, 2);
    expect([...lines, ...(await rest)]).toEqual([...linesOf(runId, 1), ...linesOf(next.runId, 2)]);
    await again.stop();
  });

  it('has all of the run that has begun, and is cut behind it', async () => {
    await using replaced = await startProcess(database);
    const { runId, threadId } = await createRun(first.store);
    const reader = follow(replaced, { threadId });
    const cut = expect(reader.readRuns(2)).rejects.toThrow(EndedEarly);
    await reader.started;
    await notified(replaced, first);
    const writer = await replaced.streams.open(await replaced.claim(runId));
    replaced.streams.retire();
    await writer.write(numbered(0, 2));
    await replaced.finish(runId);
    await writer.end();
    await cut;
    expect(reader.seen.map(({ event, text, data }) => `${event} ${text ?? JSON.stringify(data)}`)).toEqual(
      linesOf(runId, 2),
    );
  });
});

describe.each([
  ['here', () => first],
  ['in another process', () => second],
])('a state that a client changes %s', (_, changing) => {
  it('is an event for whoever asks for it, once, between the runs', async () => {
    const { threadId, runId } = await createRun(first.store);
    await execute(first, runId, 1);
    const modes = new Set(['lifecycle', 'state_update'] as const);
    const [reader, other] = [follow(first, { threadId, modes }), follow(first, { threadId })];
    const next = await createRun(first.store, { threadId });
    const [read, readByOther] = [reader.readRuns(1), other.readRuns(1)];
    await Promise.all([reader.started, other.started]);
    await notified(first, changing());
    await changing().updates.announce(threadId, '{"values":{"a":1}}');
    await notified(changing(), first);
    // Read from the database where it comes from elsewhere.
    await expect.poll(() => reader.seen.length).toBe(1);
    await execute(first, next.runId, 1);
    expect(await read).toEqual([
      `state_update {"state":{"values":{"a":1}},"thread_id":"${threadId}"}`,
      `metadata {"run_id":"${next.runId}","attempt":1}`,
      `metadata {"status":"run_done","run_id":"${next.runId}"}`,
    ]);
    expect((await readByOther).join()).not.toContain('state_update');
    await Promise.all([reader.stop(), other.stop()]);
  });
});
