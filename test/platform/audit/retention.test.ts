import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { appendEvent } from '../../../src/platform/audit/journal.ts';
import { expireEvents } from '../../../src/platform/audit/retention.ts';
import { verifyLog } from '../../../src/platform/audit/verify.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { entryOf } from './audit-entry.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

/** Appends one event for each age in days, with the hash that it would have had. */
async function appendAged(organizationId: string, days: readonly number[]): Promise<void> {
  for (const age of days) {
    await database.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
    await database.owner.write(async (trx) => {
      await sql`set local session_replication_role = replica`.execute(trx);
      const newest = sql`organization_id = ${organizationId} and seq =
        (select seq from audit_heads where organization_id = ${organizationId})`;
      await sql`update audit_events set time = clock_timestamp() - make_interval(days => ${age}) where ${newest}`.execute(
        trx,
      );
      await sql`update audit_events event set hash = audit_hash(event) where ${newest}`.execute(trx);
      await sql`update audit_heads head set hash = event.hash, time = event.time from audit_events event
        where head.organization_id = ${organizationId} and event.organization_id = ${organizationId}
          and event.seq = head.seq`.execute(trx);
    });
  }
}

async function seqsOf(organizationId: string): Promise<readonly string[]> {
  const rows = await database.owner.db
    .selectFrom('audit_events')
    .select('seq')
    .where('organization_id', '=', organizationId)
    .orderBy('seq')
    .execute();
  return rows.map(({ seq }) => seq);
}

async function countErrors(organizationId: string): Promise<number> {
  const { findings } = await verifyLog({
    store: database.store,
    checkpoints: (async function* () {})(),
    keys: [],
    nowMs: Date.now(),
    organizationId,
    report: () => undefined,
  });
  return findings;
}

describe('retention', () => {
  it('removes events older than 400 days and leaves a valid chain', async () => {
    const organizationId = randomUUID();
    await appendAged(organizationId, [500, 401, 399, 1]);
    expect(await countErrors(organizationId)).toBe(0);
    expect(await expireEvents(database.store, new Date())).toBe(2);
    expect(await seqsOf(organizationId)).toEqual(['3', '4']);
    expect(await countErrors(organizationId)).toBe(0);
    expect(await expireEvents(database.store, new Date())).toBe(0);
    await database.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
    expect(await countErrors(organizationId)).toBe(0);
  });

  it('may remove every event, and the chain continues', async () => {
    const organizationId = randomUUID();
    await appendAged(organizationId, [500, 450]);
    expect(await expireEvents(database.store, new Date())).toBe(2);
    expect(await seqsOf(organizationId)).toEqual([]);
    expect(await countErrors(organizationId)).toBe(0);
    await database.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
    expect(await seqsOf(organizationId)).toEqual(['3']);
    expect(await countErrors(organizationId)).toBe(0);
  });

  it('removes nothing younger, whatever the clock of the platform says', async () => {
    const organizationId = randomUUID();
    await appendAged(organizationId, [450, 399]);
    expect(await expireEvents(database.store, new Date(Date.now() + 1000 * DAY_MS))).toBe(1);
    expect(await seqsOf(organizationId)).toEqual(['2']);
  });

  it('removes nothing younger, whatever the time zone of the session', async () => {
    const organizationId = randomUUID();
    await appendAged(organizationId, [399]);
    // A daylight saving time that applied 400 days ago, does not apply now, and shifts the clock by two weeks.
    const dayOf = (age: number): number => 1 + (Math.floor((Date.now() - age * DAY_MS) / DAY_MS) % 365);
    const ages = Array.from({ length: 12 }, (_, n) => n * 30);
    const zones = ages.map((age) => `AAA-167BBB+167,J${dayOf(age)},J${dayOf(age - 60)}`);
    for (const zone of zones)
      await database.store.write(async (trx) => {
        await sql`select set_config('timezone', ${zone}, true)`.execute(trx);
        await sql`select audit_expire(${organizationId}, now(), 10)`.execute(trx);
      });
    expect(await seqsOf(organizationId)).toEqual(['1']);
  });

  it('works in slices', async () => {
    const organizationId = randomUUID();
    await appendAged(organizationId, [500, 499, 498, 497, 496]);
    const slice = sql<{ removed: number }>`select audit_expire(${organizationId}, now(), 2) as removed`;
    const removed: (number | undefined)[] = [];
    for (let n = 0; n < 4; n += 1) removed.push((await slice.execute(database.store.db)).rows[0]?.removed);
    expect(removed).toEqual([2, 2, 1, 0]);
    expect(await countErrors(organizationId)).toBe(0);
  });
});
