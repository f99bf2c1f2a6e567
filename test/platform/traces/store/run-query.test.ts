// What PostgreSQL reads for a page: the partitions of the window, in the order of an index.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/platform/store/sql.ts';
import { parseFilter } from '../../../../src/platform/traces/filter/parser.ts';
import { pageOf, queryRuns } from '../../../../src/platform/traces/store/run-query.ts';
import type { RunQuery } from '../../../../src/platform/traces/trace-store.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

let database: TestDatabase;
const workspaceId = randomUUID();
const project = randomUUID();
beforeAll(async () => {
  database = await createTestDatabase();
  await sql`select trace_make_partition('2026-03-01'::date + n) from generate_series(0, 9) n`.execute(
    database.owner.db,
  );
  await sql`
    insert into trace_runs (workspace_id, session_id, start_time, id, trace_id, dotted_order)
    select ${workspaceId}, ${project}, '2026-03-01T00:00:00Z'::timestamptz + n * interval '3 minutes', id, id, ''
    from generate_series(0, 4799) n, lateral (select gen_random_uuid() as id where n >= 0) made`.execute(
    database.owner.db,
  );
  await sql`analyze trace_runs`.execute(database.owner.db);
});
afterAll(() => database[Symbol.asyncDispose]());

const window = { from: '2026-03-04T12:00:00Z', to: '2026-03-06T12:00:00Z' };

async function planOf(given: Partial<RunQuery> | object = {}): Promise<string> {
  const query = { workspaceId, window, order: 'desc', limit: 101, projects: [project], ...given } as RunQuery;
  return JSON.stringify(await pageOf(database.store.db, query, window).explain('json'));
}

const partitionsIn = (plan: string): readonly string[] =>
  [...new Set(plan.match(/trace_runs_2\d{7}/g))].toSorted();

const filterOf = (text: string) => {
  const parsed = parseFilter(text);
  return parsed.ok ? parsed.filter : undefined;
};

describe('the plan of a page', () => {
  const days = ['trace_runs_20260304', 'trace_runs_20260305', 'trace_runs_20260306'];

  it.each([
    ['of a project', {}],
    ['of a filter', { filter: filterOf('or(eq(status, "error"), search("x"), has(tags, "y"))') }],
    ['of all projects', { projects: undefined }],
    ['of two projects', { projects: [project, randomUUID()] }],
    ['from the oldest', { order: 'asc' }],
  ])('%s has the partitions of the window alone, and sorts none', async (_, given) => {
    const plan = await planOf(given);
    expect(partitionsIn(plan)).toEqual(days);
    expect(plan).not.toContain('"Sort"');
  });

  it('after a cursor has no partition before it', async () => {
    const after = { start_time: '2026-03-05T01:00:00Z', id: randomUUID() };
    expect(partitionsIn(await planOf({ after }))).toEqual(days.slice(0, 2));
    expect(partitionsIn(await planOf({ after, order: 'asc' }))).toEqual(days.slice(1));
  });

  it('with conditions on the trace has a day more on either side', async () => {
    const filter = filterOf('eq(status, "error")');
    const wide = ['trace_runs_20260303', ...days, 'trace_runs_20260307'];
    expect(partitionsIn(await planOf({ traceFilter: filter }))).toEqual(wide);
    expect(partitionsIn(await planOf({ treeFilter: filter }))).toEqual(wide);
  });
});

it('a page after a cursor has no run from before the window, not by a microsecond', async () => {
  const query = { workspaceId, projects: [project], order: 'desc', limit: 5_000 } as const;
  const after = { start_time: '2026-03-08T00:00:00.000100Z', id: randomUUID() };
  const found = await queryRuns(database.store.db, {
    ...query,
    ...{ after, window: { from: '2026-03-01T00:00:00.000500Z' } },
  });
  expect(found.at(-1)?.start_time).toBe('2026-03-01T00:03:00.000000Z');
});
