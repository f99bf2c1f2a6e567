// The events of runs, in the process that executes a run and in another one.
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EndedEarly } from '../../../../src/base/http/http-response.ts';
import { LostRun } from '../../../../src/platform/agent-server/streams/event-writer.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import {
  collect,
  countStored,
  createRun,
  numbered,
  startProcess,
  type TestProcess,
} from './streams-scene.ts';

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

const never = new AbortController().signal;
const metadata = (id: number, runId: string, attempt: number): string =>
  `${id} metadata {"run_id":"${runId}","attempt":${attempt}}`;
const custom = (from: number, to: number, shift = 1): string[] =>
  Array.from({ length: to - from }, (_, index) => `${from + index + shift} custom ${from + index}`);

describe('in the process that executes the run', () => {
  it('a reader gets every event, metadata first, and the database none', async () => {
    const { runId } = await createRun(first.store);
    const events = collect(first.streams.read(runId, { after: -1, signal: never }));
    const writer = await first.streams.open(await first.claim(runId));
    await writer.write(numbered(0, 3));
    await writer.write(numbered(3, 2));
    await first.finish(runId);
    await writer.end();
    expect(await events).toEqual([metadata(0, runId, 1), ...custom(0, 5)]);
    expect(await countStored(first.store, runId)).toBe(0);
  });

  it('a reader that comes after the run has begun, or ended, gets what nobody has read yet', async () => {
    const { runId } = await createRun(first.store);
    const writer = await first.streams.open(await first.claim(runId));
    await writer.write(numbered(0, 2));
    await first.finish(runId);
    await writer.end();
    expect(await collect(first.streams.read(runId, { signal: never }))).toEqual([
      metadata(0, runId, 1),
      ...custom(0, 2),
    ]);
    expect(await collect(first.streams.read(runId, { signal: never }))).toEqual([]);
  });

  it('a second reader gets what comes from then on', async () => {
    const { runId } = await createRun(first.store);
    const creator = collect(first.streams.read(runId, { after: -1, signal: never }));
    const writer = await first.streams.open(await first.claim(runId));
    await writer.write(numbered(0, 2));
    const joined = first.streams.read(runId, { signal: never })[Symbol.asyncIterator]();
    const next = joined.next();
    // The reader joins with the first question.
    await setImmediate();
    await writer.write(numbered(2, 1));
    expect((await next).value).toEqual([{ id: '3', event: 'custom', data: '2' }]);
    await first.finish(runId);
    await writer.end();
    expect((await joined.next()).done).toBe(true);
    expect(await creator).toHaveLength(4);
  });

  it('a reader that does not read is cut at 8 MiB, and the run and other readers go on', async () => {
    const { runId } = await createRun(first.store);
    const idle = first.streams.read(runId, { after: -1, signal: never })[Symbol.asyncIterator]();
    const others = collect(first.streams.read(runId, { after: -1, signal: never }));
    const writer = await first.streams.open(await first.claim(runId));
    const large = { event: 'custom', data: JSON.stringify('x'.repeat(1024 * 1024)) };
    for (let count = 0; count < 12; count += 1) await writer.write([large]);
    await expect(idle.next()).rejects.toThrow(EndedEarly);
    await first.finish(runId);
    await writer.end();
    expect(await others).toHaveLength(13);
  });

  it('a reader that leaves is forgotten', async () => {
    const { runId } = await createRun(first.store);
    const left = new AbortController();
    const events = collect(first.streams.read(runId, { after: -1, signal: left.signal }));
    const writer = await first.streams.open(await first.claim(runId));
    left.abort();
    await events;
    for (let count = 0; count < 10; count += 1)
      await writer.write([{ event: 'custom', data: JSON.stringify('x'.repeat(1024 * 1024)) }]);
    await first.finish(runId);
    await writer.end();
  });

  it('a reader that leaves before it has begun is forgotten, and what nobody has read waits for the next one', async () => {
    const { runId } = await createRun(first.store);
    const left = new AbortController();
    first.streams.read(runId, { after: -1, signal: left.signal });
    left.abort();
    const writer = await first.streams.open(await first.claim(runId));
    await writer.write(numbered(0, 3));
    const events = collect(first.streams.read(runId, { after: -1, signal: never }));
    await first.finish(runId);
    await writer.end();
    expect(await events).toEqual([metadata(0, runId, 1), ...custom(0, 3)]);
  });
});

describe('in another process', () => {
  it('a reader gets every event of a run that its process created', async () => {
    const { runId } = await createRun(first.store, { streamedBy: first.streams.processId });
    const events = collect(first.streams.read(runId, { after: -1, signal: never }));
    const writer = await second.streams.open(await second.claim(runId));
    await writer.write(numbered(0, 3));
    await writer.write(numbered(3, 2));
    await second.finish(runId);
    await writer.end();
    expect(await events).toEqual([metadata(0, runId, 1), ...custom(0, 5)]);
  });

  it('a reader that joins has the events stored from then on, with what nobody has read', async () => {
    const { runId } = await createRun(first.store);
    const writer = await second.streams.open(await second.claim(runId));
    await writer.write(numbered(0, 2));
    expect(await countStored(first.store, runId)).toBe(0);
    const events = first.streams.read(runId, { signal: never })[Symbol.asyncIterator]();
    expect((await events.next()).value).toHaveLength(3);
    await writer.write(numbered(2, 1));
    expect((await events.next()).value).toEqual([{ id: '3', event: 'custom', data: '2' }]);
    await second.finish(runId);
    await writer.end();
    expect((await events.next()).done).toBe(true);
  });

  it('the end of a run resolves, by its commit, its deletion, and where there is none', async () => {
    const { runId } = await createRun(first.store);
    const { runId: deleted } = await createRun(first.store);
    const ended = [first, second].map(({ streams }) => streams.ended(runId, never));
    const writer = await second.streams.open(await second.claim(runId));
    await second.finish(runId);
    await writer.end();
    await Promise.all(ended);
    await first.streams.ended(runId, never);
    await sql`delete from agent_runs where run_id = ${deleted}`.execute(first.store.db);
    await second.streams.ended(deleted, never);
    const left = new AbortController();
    const { runId: waiting } = await createRun(first.store);
    const aborted = first.streams.ended(waiting, left.signal);
    left.abort();
    await aborted;
  });
});

describe('a resumable run', () => {
  it('is replayed after the last event that a client has, while it runs and after its end', async () => {
    const { runId } = await createRun(first.store, { isResumable: true });
    const writer = await first.streams.open(await first.claim(runId));
    await writer.write(numbered(0, 4));
    const readers = [first, second].map(({ streams }) =>
      collect(streams.read(runId, { after: 2, signal: never })),
    );
    await writer.write(numbered(4, 4));
    await first.finish(runId);
    await writer.end();
    for (const events of await Promise.all(readers)) expect(events).toEqual(custom(2, 8));
    for (const { streams } of [first, second])
      expect(await collect(streams.read(runId, { after: -1, signal: never }))).toEqual([
        metadata(0, runId, 1),
        ...custom(0, 8),
      ]);
  });

  it('has its events stored before anybody sees them', async () => {
    const { runId } = await createRun(first.store, { isResumable: true });
    const events = first.streams.read(runId, { after: -1, signal: never })[Symbol.asyncIterator]();
    const writer = await first.streams.open(await first.claim(runId));
    for (let count = 1; count < 5; count += 1) {
      const { value } = await events.next();
      expect(await countStored(first.store, runId)).toBeGreaterThanOrEqual(Number(value?.at(-1)?.id) + 1);
      await writer.write(numbered(count, 1));
    }
    await writer.release();
    await events.return?.();
  });

  it('goes on by the next attempt in another process, whose events the lost one cannot follow', async () => {
    const { runId } = await createRun(first.store, { isResumable: true });
    const readers = [first, second].map(({ streams }) =>
      collect(streams.read(runId, { after: -1, signal: never })),
    );
    const lost = await first.streams.open(await first.claim(runId));
    await lost.write(numbered(0, 2));
    const writer = await second.streams.open(await second.claim(runId));
    await expect(lost.write(numbered(90, 2))).rejects.toThrow(LostRun);
    await lost.release();
    await writer.write(numbered(2, 2));
    await second.finish(runId);
    await writer.end();
    const expected = [metadata(0, runId, 1), ...custom(0, 2), metadata(3, runId, 2), ...custom(2, 4, 2)];
    for (const events of await Promise.all(readers)) expect(events).toEqual(expected);
  });
});

it('a run without stored events goes on by an attempt in another process, in order', async () => {
  const { runId } = await createRun(first.store, { streamedBy: first.streams.processId });
  const events = collect(first.streams.read(runId, { after: -1, signal: never }));
  const given = await first.streams.open(await first.claim(runId));
  await given.write(numbered(0, 2));
  const writer = await second.streams.open(await second.claim(runId));
  await given.release();
  await writer.write(numbered(2, 1));
  await second.finish(runId);
  await writer.end();
  const all = await events;
  expect(all.map((line) => line.split(' ').slice(1).join(' '))).toEqual([
    metadata(0, runId, 1).slice(2),
    'custom 0',
    'custom 1',
    metadata(0, runId, 2).slice(2),
    'custom 2',
  ]);
  const ids = all.map((line) => Number(line.split(' ')[0]));
  expect(ids).toEqual(ids.toSorted((a, b) => a - b));
});

describe('in a process that is replaced', () => {
  it('a reader of a run that waits for its time is cut, before and after', async () => {
    await using replaced = await startProcess(database);
    const { runId } = await createRun(first.store);
    await sql`update agent_runs set run_after = now() + interval '1 hour' where run_id = ${runId}`.execute(
      first.store.db,
    );
    const read = (): Promise<string[]> => collect(replaced.streams.read(runId, { after: -1, signal: never }));
    const before = read();
    replaced.streams.retire();
    await expect(before).rejects.toThrow(EndedEarly);
    await expect(read()).rejects.toThrow(EndedEarly);
  });

  it('a reader of a run that is executed elsewhere, or is to begin now, has all of it', async () => {
    await using replaced = await startProcess(database, 50);
    const running = await createRun(first.store, { streamedBy: replaced.streams.processId });
    const writer = await first.streams.open(await first.claim(running.runId));
    const waiting = await createRun(first.store, { streamedBy: replaced.streams.processId });
    const reads = [running, waiting].map(({ runId }) =>
      collect(replaced.streams.read(runId, { after: -1, signal: never })),
    );
    replaced.streams.retire();
    const late = await first.streams.open(await first.claim(waiting.runId));
    for (const [one, { runId }] of [
      [writer, running],
      [late, waiting],
    ] as const) {
      await one.write(numbered(0, 2));
      await first.finish(runId);
      await one.end();
    }
    expect(await Promise.all(reads)).toEqual(
      [running, waiting].map(({ runId }) => [metadata(0, runId, 1), ...custom(0, 2)]),
    );
  });
});
