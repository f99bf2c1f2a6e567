// Which runs a claim finds: the first of each thread that is due, also behind many that wait for others of their threads.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import '../../../../src/platform/agent-server/queue/startable.ts';
import {
  claimLoneRuns,
  claimRun,
  claimRuns,
  lookAtPending,
} from '../../../../src/platform/agent-server/queue/claims.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createAgentRows } from '../../../support/agent-rows.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

let database: TestDatabase;
let assistantId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  assistantId = await createAgentRows(database.store).addAssistant();
});
afterAll(() => database?.[Symbol.asyncDispose]());
beforeEach(() => database.store.db.deleteFrom('agent_threads').execute());

type Given = {
  readonly count?: number;
  readonly party?: string;
  readonly attempt?: number;
  /** Seconds from now. */
  readonly due?: number;
  readonly isAlone?: boolean;
};

const addThread = () => createAgentRows(database.store).addThread();

/** Pending runs, by their position. */
async function add(threadId: string, given: Given = {}) {
  const { count = 1, party = '', attempt = 0, due = -1, isAlone = false } = given;
  const { rows } = await sql<{ run_id: string }>`
    insert into agent_runs (run_id, thread_id, assistant_id, assistant_version, graph_id, kwargs, multitask_strategy, party,
      attempt, is_alone, run_after)
    select gen_random_uuid(), ${threadId}, ${assistantId}, 1, 'agent', '{}', 'enqueue', ${party}, ${attempt},
      ${isAlone}::boolean, now() + ${due}::int * interval '1 second' from generate_series(1, ${count}::int)
    returning run_id`.execute(database.store.db);
  return rows.map(({ run_id: id }) => id);
}

async function claim(places = 8, excluded: readonly string[] = []): Promise<readonly string[]> {
  const claimed = await claimRuns(database.store.db, randomUUID(), { places, excluded });
  return claimed.map(({ run_id: id }) => id);
}

it('one of a thread at a time, in their order', async () => {
  const [one, two] = [await addThread(), await addThread()];
  const [first, second = ''] = await add(one, { count: 3 });
  const [other] = await add(two);
  expect(await claimRun(database.store.db, randomUUID(), second)).toBeUndefined();
  expect(new Set(await claim())).toEqual(new Set([first, other]));
  expect(await claim()).toEqual([]);
});

it('one that was executed before precedes the others, also while it waits', async () => {
  const thread = await addThread();
  const [first = ''] = await add(thread);
  const [waits] = await add(thread, { attempt: 1, due: 3600 });
  expect(await claim()).toEqual([]);
  expect(await claimRun(database.store.db, randomUUID(), first)).toBeUndefined();
  await sql`update agent_runs set run_after = now() where run_id = ${waits}`.execute(database.store.db);
  expect(await claim()).toEqual([waits]);
});

it('one that is due later is in the way of none', async () => {
  const thread = await addThread();
  await add(thread, { due: 3600 });
  const [next] = await add(thread);
  expect(await claim()).toEqual([next]);
});

it('the thread of several users: nobody overtakes', async () => {
  const thread = await addThread();
  const [first] = await add(thread, { party: 'a' });
  await add(thread, { party: 'b' });
  expect(await claim(8, ['a'])).toEqual([]);
  expect(await claim()).toEqual([first]);
});

it('what waits behind many that cannot start', async () => {
  const [crowded, free] = [await addThread(), await addThread()];
  const [first] = await add(crowded, { count: 300, party: 'a' });
  const [behind] = await add(free, { party: 'a' });
  expect(await claim(1)).toEqual([first]);
  expect(await claim(8, ['a'])).toEqual([]);
  expect(await claim()).toEqual([behind]);
  expect(await claim()).toEqual([]);
});

const claimLone = async (places: number, lastParty?: string): Promise<readonly string[]> =>
  (await claimLoneRuns(database.store.db, randomUUID(), { places, lastParty })).map(({ run_id: id }) => id);

it('those that are executed alone are in the way of none, and claimed apart, by turns', async () => {
  const lost = { attempt: 1, isAlone: true };
  for (let n = 0; n < 10; n += 1) {
    const thread = await addThread();
    await add(thread, { ...lost, party: 'eve', due: -60 + n });
    await add(thread, { party: 'eve', due: -60 });
  }
  const [first] = await add(await addThread(), { ...lost, party: 'ada', due: -5 });
  const [later] = await add(await addThread(), { ...lost, party: 'ada', due: 3600 });
  const [other] = await add(await addThread(), { party: 'eve' });
  expect(await lookAtPending(database.store.db, 15)).toMatchObject({ hasLone: true, count: 15 });
  expect(await claim(2)).toEqual([other]);
  expect(await claim(2)).toEqual([]);
  expect(await claimLone(1, 'eve')).toEqual([first]);
  expect(await claimLone(1, 'ada')).toHaveLength(1);
  const rest = await claimLone(100);
  expect(rest).toHaveLength(9);
  expect(rest).not.toContain(later);
  expect(await claimLone(100)).toEqual([]);
});
