// How many events PostgreSQL looks at for one page: those of the page, not all of the organization, whatever the filters are.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EventQuery, listEvents } from '../../../src/platform/audit/query.ts';
import { CompiledQuery, sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';

/** Of the organization that asks. All but a few are of one operation, in no workspace. */
const EVENTS = 10_000;
const LIMIT = 10;
const organizationId = randomUUID();
const workspaceId = randomUUID();

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const { db } = database.owner;
  // What is rare here is frequent elsewhere, which is all that the statistics know.
  for (const [organization, usual] of [
    [organizationId, 'create_listener'],
    [randomUUID(), 'delete_listener'],
    [randomUUID(), 'update_listener'],
  ])
    await sql`
      insert into audit_events (organization_id, seq, id, time, operation, workspace_id, record, previous_hash, hash)
      select ${organization}, n, gen_random_uuid(), now() - n * interval '1 second',
        case n % 5000 when 7 then 'update_listener' when 8 then 'delete_listener' else ${usual} end,
        case n % 5000 when 9 then ${workspaceId}::uuid end, '{}', '', ''
      from generate_series(1, ${EVENTS}::int) as n`.execute(db);
  await sql`analyze audit_events`.execute(db);
});
afterAll(() => database[Symbol.asyncDispose]());

type Plan = {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
};

/** Events that its statement reads from the table. */
async function countRead(query: Partial<EventQuery>): Promise<number> {
  const { db } = database.store;
  let statement: CompiledQuery | undefined;
  const spied = db.withPlugin({
    transformQuery({ node, queryId }) {
      statement = db.getExecutor().compileQuery(node, queryId);
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const window = { start: Date.now() - 400 * 86_400_000, end: Date.now() + 60_000 };
  await listEvents(spied, { organizationId, limit: LIMIT, ...query }, window);
  if (statement === undefined) throw new Error('no statement was sent');
  const text = `explain (analyze, format json) ${statement.sql}`;
  const { rows } = await db.executeQuery<{ 'QUERY PLAN': readonly [{ readonly Plan: Plan }] }>(
    CompiledQuery.raw(text, [...statement.parameters]),
  );
  return sumOf(rows[0]?.['QUERY PLAN'][0].Plan);
}

function sumOf(plan: Plan | undefined): number {
  if (plan === undefined) return Number.NaN;
  const { Plans: below = [] } = plan;
  if (below.length > 0) return below.reduce((sum, one) => sum + sumOf(one), 0);
  if (plan['Relation Name'] !== 'audit_events') return 0;
  return (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops'];
}

describe('a page of events', () => {
  it.each<[string, Partial<EventQuery>]>([
    ['no filter', {}],
    ['an operation that never happened', { operations: ['login'] }],
    ['an operation that is rare here', { operations: ['delete_listener'] }],
    ['an operation that is frequent', { operations: ['create_listener'] }],
    ['operations that are rare here', { operations: ['delete_listener', 'update_listener'] }],
    [
      'operations that are frequent and rare',
      { operations: ['create_listener', 'login', 'delete_listener'] },
    ],
    ['a workspace', { workspaceId }],
    ['a workspace without events', { workspaceId: randomUUID() }],
    ['a workspace and an operation', { workspaceId, operations: ['delete_listener'] }],
    ['a workspace and operations', { workspaceId, operations: ['delete_listener', 'update_listener'] }],
  ])('with %s reads a few events for each operation', async (_, query) => {
    const lists = Math.max(1, query.operations?.length ?? 1);
    expect(await countRead(query)).toBeLessThanOrEqual(lists * (LIMIT + 1));
  });

  it('has an event once, also when its operation was named twice', async () => {
    const operations = ['update_listener', 'update_listener', 'delete_listener'] as const;
    const window = { start: Date.now() - 400 * 86_400_000, end: Date.now() + 60_000 };
    const page = await listEvents(database.store.db, { organizationId, limit: LIMIT, operations }, window);
    expect(page.rows.map(({ operation }) => operation)).toEqual([
      'update_listener',
      'delete_listener',
      'update_listener',
      'delete_listener',
    ]);
  });
});
