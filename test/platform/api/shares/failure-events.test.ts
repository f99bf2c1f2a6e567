// A flood of failures leaves few events, takes no place of a write, and is counted to the last.
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import {
  createFailureEvents,
  type FailureEvents,
  failureRates,
} from '../../../../src/platform/api/shares/failure-events.ts';
import type { AuditEntry } from '../../../../src/platform/audit/journal.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { entryOf } from '../../audit/audit-entry.ts';
import { createFakeClock, type FakeClock } from './fake-clock.ts';

let database: TestDatabase;
let clock: FakeClock;
let logged: string[];
const organization = randomUUID();
const failureOf = (id: string, keyId: string = randomUUID()): AuditEntry => ({
  ...entryOf(id),
  isSuccess: false,
  keyId,
  status: 403,
});

beforeEach(async () => {
  database = await createTestDatabase();
  clock = createFakeClock();
  logged = [];
});
afterEach(() => database[Symbol.asyncDispose]());

function open(rates = failureRates): FailureEvents {
  const log = createLog('info', { write: (line) => void logged.push(JSON.parse(line).msg) });
  return createFailureEvents({ store: database.store, log }, clock, rates);
}

type Stored = { readonly count: number | undefined; readonly transaction: string };

async function stored(id: string): Promise<readonly Stored[]> {
  const rows = await database.owner.db
    .selectFrom('audit_events')
    .select(['record', sql<string>`xmin::text`.as('transaction')])
    .where('organization_id', '=', id)
    .orderBy('seq')
    .execute();
  return rows.map(({ record, transaction }) => ({
    count: JSON.parse(record).enrichments.request_count,
    transaction,
  }));
}

const few = { perSecond: 1, burst: 3 };
const many = { perSecond: 1_000, burst: 1_000 };

it('a key that fails too often gets events up to its rate, then one with the number of the rest', async () => {
  const failures = open({ key: few, organization: many });
  const key = randomUUID();
  for (let at = 0; at < 10; at += 1) await failures.record({ entry: failureOf(organization, key) });
  await failures.record({ entry: failureOf(organization) });
  expect((await stored(organization)).map(({ count }) => count)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  await clock.advance(59_999);
  expect(await stored(organization)).toHaveLength(4);
  await clock.advance(1);
  await failures.settle();
  expect((await stored(organization)).map(({ count }) => count).slice(4)).toEqual([7]);
});

it('sessions of one key share its rate, and take nothing from those of other keys', async () => {
  const failures = open({ key: few, organization: many });
  const failureIn = (keyId: string): AuditEntry => ({
    ...failureOf(organization),
    ...{ keyId: undefined, session: { id: randomUUID(), keyId } },
  });
  const key = randomUUID();
  for (let at = 0; at < 10; at += 1) await failures.record({ entry: failureIn(key) });
  await failures.record({ entry: failureIn(randomUUID()) });
  expect(await stored(organization)).toHaveLength(4);
});

it('so does an organization, whatever the number of its keys, and no other one', async () => {
  const failures = open({ key: many, organization: few });
  const other = randomUUID();
  for (let at = 0; at < 10; at += 1) await failures.record({ entry: failureOf(organization) });
  await failures.record({ entry: failureOf(other) });
  await failures.settle();
  const counts = (await stored(organization)).map(({ count }) => count ?? 1);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(10);
  expect(await stored(other)).toHaveLength(1);
});

it('failures that come together share a transaction', async () => {
  const failures = open();
  await Promise.all(Array.from({ length: 50 }, () => failures.record({ entry: failureOf(organization) })));
  const events = await stored(organization);
  expect(events).toHaveLength(50);
  // The first was alone, when the others came.
  expect(new Set(events.map(({ transaction }) => transaction)).size).toBe(3);
});

it('a chain that is held keeps no failure of another organization waiting, and what it misses is summed', async () => {
  const failures = open();
  await failures.record({ entry: failureOf(organization) });
  const held = await database.owner.db.startTransaction().execute();
  await sql`select from audit_heads where organization_id = ${organization} for update`.execute(held);
  const late = failures.record({ entry: failureOf(organization) });
  const other = randomUUID();
  for (let at = 0; at < 3; at += 1) await failures.record({ entry: failureOf(other) });
  expect(await stored(other)).toHaveLength(3);
  await late;
  expect(logged).toEqual(['events of failures could not be stored: they are stored as sums']);
  await held.rollback().execute();
  await failures.settle();
  expect((await stored(organization)).map(({ count }) => count)).toEqual([undefined, 1]);
});

it('an organization whose failures cannot be stored costs others no event', async () => {
  const failures = open({ key: many, organization: { perSecond: 1, burst: 2_000 } });
  await failures.record({ entry: failureOf(organization) });
  const held = await database.owner.db.startTransaction().execute();
  await sql`select from audit_heads where organization_id = ${organization} for update`.execute(held);
  const late = Array.from({ length: 1_500 }, () => failures.record({ entry: failureOf(organization) }));
  const other = randomUUID();
  await failures.record({ entry: failureOf(other) });
  expect(await stored(other)).toHaveLength(1);
  await held.rollback().execute();
  await Promise.all(late);
  await failures.settle();
  const counts = (await stored(organization)).map(({ count }) => count ?? 1);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1_501);
});

it('a response waits two seconds at most, and the event is stored later', async () => {
  const failures = open();
  await failures.record({ entry: failureOf(organization) });
  const held = await database.owner.db.startTransaction().execute();
  await sql`select from audit_heads where organization_id = ${organization} for update`.execute(held);
  const late = failures.record({ entry: failureOf(organization) });
  await clock.advance(2_000);
  await late;
  await held.rollback().execute();
  await failures.settle();
  expect(await stored(organization)).toHaveLength(2);
});
