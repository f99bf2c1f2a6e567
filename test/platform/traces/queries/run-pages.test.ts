// Pages of whole runs as exports read them: by the text of a filter, in slices of time, with all of their feedback.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PagedRun, RunPageColumn, RunPageQuery } from '../../../../src/platform/traces/contract.ts';
import { InvalidInput } from '../../../../src/base/domain-error.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createRunPages } from '../../../../src/platform/traces/queries/run-pages.ts';
import { postgresTraceStore } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { addWorkspace, mergeRuns, partOf } from '../store/trace-scene.ts';

let database: TestDatabase;
let workspaceId: string;
const projectId = randomUUID();
const pages = createRunPages(postgresTraceStore);
const hours = ['00', '05', '05', '23'];
const parts = hours.map((hour, at) =>
  partOf({
    ...{ project: { rank: 2, id: projectId }, values: { name: at === 2 ? 'other' : 'one' } },
    start: { start_time: `2026-11-20T${hour}:00:00.00000${at}Z` },
  }),
);
beforeAll(async () => {
  database = await createTestDatabase();
  workspaceId = await addWorkspace(database.owner.db);
  await mergeRuns(database.store, workspaceId, parts);
});
afterAll(() => database[Symbol.asyncDispose]());

const queryOf = (more: Partial<RunPageQuery> = {}): RunPageQuery => ({
  ...{ workspaceId, projectId, window: { from: '2026-11-20T00:00:00Z', to: '2026-11-21T00:00:00Z' } },
  ...{ columns: new Set<RunPageColumn>(['name', 'feedback_stats']), maxRows: 2, maxBytes: 1_000_000 },
  ...more,
});

async function readAll(query: RunPageQuery) {
  const [found, sizes]: [PagedRun[], number[]] = [[], []];
  for (let next: RunPageQuery | undefined = query; next !== undefined; ) {
    const { after: _, ...rest }: RunPageQuery = next;
    const page = await pages.readPage(database.store.db, next);
    found.push(...page.runs);
    sizes.push(page.runs.length);
    next = page.next && { ...rest, ...page.next };
  }
  return { ids: found.map(({ id }) => id), found, sizes };
}

it('follow one another to the end of the window', async () => {
  const { ids, sizes } = await readAll(queryOf());
  expect([ids, sizes]).toEqual([parts.map(({ id }) => id), [2, 2, 0]]);
});

it('of a filter read an hour at once, also where it has no runs', async () => {
  const { ids, sizes } = await readAll(queryOf({ filter: 'eq(name, "one")' }));
  expect(ids).toEqual([parts[0]?.id, parts[1]?.id, parts[3]?.id]);
  expect(sizes.length).toBeGreaterThan(20);
});

it('are none where the text is no filter, and say at which character', async () => {
  const failure = await pages
    .readPage(database.store.db, queryOf({ filter: 'eq(name,' }))
    .catch((error) => error);
  expect(failure).toBeInstanceOf(InvalidInput);
  expect(failure.issues).toEqual([
    expect.objectContaining({ msg: expect.stringContaining('(character 9)') }),
  ]);
});

it('have the feedback of each run, however much there is', { timeout: 30_000 }, async () => {
  const about = (at: number) => ({ workspace_id: workspaceId, run_id: parts[at]?.id, session_id: projectId });
  const values = Array.from({ length: 6_000 }, (_, key) => ({
    ...about(key % 2),
    key: `k${key}`,
    score: key,
  }));
  const more = Array.from({ length: 8_000 }, (_, key) => ({ ...about(3), key: `k${key}`, score: key }));
  for (const rows of [values, more])
    for (let from = 0; from < rows.length; from += 2_000)
      await database.owner.db
        .insertInto('trace_feedback')
        .values(rows.slice(from, from + 2_000))
        .execute();
  const { found } = await readAll(queryOf({ maxRows: 100 }));
  const counts = found.map(({ feedback_stats: stats }) => stats && Object.keys(JSON.parse(stats)).length);
  expect(counts).toEqual([3_000, 3_000, undefined, 8_000]);
  expect(JSON.parse(found[1]?.feedback_stats ?? '')).toMatchObject({ k7: { n: 1, avg: 7, values: {} } });
});

it('are cancelled by the database when nobody waits for them any more', async () => {
  const slow = createRunPages({
    async readRunPage(trx) {
      await sql`select pg_sleep(120)`.execute(trx);
      return [];
    },
  });
  const sleeping = async (): Promise<number> => {
    const { rows } = await sql<{ pid: number }>`
      select pid from pg_stat_activity where state = 'active' and query like 'select pg_sleep%'`.execute(
      database.owner.db,
    );
    return rows.length;
  };
  const [aborting, cancelBy] = [new AbortController(), database.owner.db];
  const reading = slow.readPage(database.store.db, queryOf(), { signal: aborting.signal, cancelBy });
  const settled = reading.catch((error: unknown) => error);
  await expect.poll(sleeping, { timeout: 10_000, interval: 20 }).toBe(1);
  aborting.abort(new Error('cancelled'));
  expect(await settled).toMatchObject({ kind: 'unavailable', cause: { code: '57014' } });
  expect(await sleeping()).toBe(0);
  // The connection serves others again.
  expect((await readAll(queryOf())).sizes).toEqual([2, 2, 0]);
  await expect(
    pages.readPage(database.store.db, queryOf(), { signal: aborting.signal, cancelBy }),
  ).rejects.toThrow('cancelled');
});

it('unpack payloads within a number of bytes', async () => {
  const plain = Buffer.from('{"a":1}');
  expect(await pages.unpack(plain, 10)).toBe(plain);
});
