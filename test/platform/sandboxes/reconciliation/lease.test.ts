// What a process that has lost its lease may still do: nothing.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createLease, LeaseLost } from '../../../../src/platform/sandboxes/reconciliation/lease.ts';
import { LEASE_SECONDS } from '../../../../src/platform/sandboxes/reconciliation/machine.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const create = (machineId = randomUUID()) => {
  const holder = randomUUID();
  return { machineId, holder, lease: createLease(database.store.db, { machineId, holder }) };
};

it('before it was taken, and after its time, no call may begin', async () => {
  const { lease } = create();
  expect(() => lease.require()).toThrow(LeaseLost);
  const startedAt = performance.now();
  await lease.renew();
  lease.require();
  const now = vi.spyOn(performance, 'now').mockReturnValue(startedAt + LEASE_SECONDS * 1000 - 1);
  try {
    lease.require();
    // Counted from when the statement was sent, whatever it took.
    now.mockReturnValue(startedAt + LEASE_SECONDS * 1000 + 5_000);
    expect(() => lease.require()).toThrow(LeaseLost);
    now.mockRestore();
    await lease.renew();
    lease.require();
  } finally {
    now.mockRestore();
  }
});

it('a clock of the machine that is a day off does not matter', async () => {
  const { machineId, lease } = create();
  vi.setSystemTime(Date.now() + 86_400_000);
  try {
    await lease.renew();
    lease.require();
    const other = create(machineId);
    expect(await other.lease.renew()).toBe(false);
    expect(() => other.lease.require()).toThrow(LeaseLost);
  } finally {
    vi.useRealTimers();
  }
});

it('what another process has taken over is not written, although the time is not over', async () => {
  const { machineId, lease } = create();
  await lease.renew();
  const write = () => database.store.write(async (trx) => lease.fence(trx));
  await write();
  const { db } = database.owner;
  await db.updateTable('box_machines').set({ holder: randomUUID() }).where('id', '=', machineId).execute();
  lease.require();
  await expect(write()).rejects.toThrow(LeaseLost);
  expect(() => lease.require()).toThrow(LeaseLost);
});

it('it is renewed as long as somebody waits', async () => {
  const { machineId, lease } = create();
  await lease.renew();
  const { db } = database.owner;
  await db
    .updateTable('box_machines')
    .set({ held_until: new Date(0) })
    .where('id', '=', machineId)
    .execute();
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const work = Promise.withResolvers<number>();
    const kept = lease.keep(work.promise);
    vi.advanceTimersByTime(5_000);
    const select = db.selectFrom('box_machines').select('held_until').where('id', '=', machineId);
    await expect
      .poll(async () => (await select.executeTakeFirstOrThrow()).held_until?.getTime())
      .toBeGreaterThan(0);
    work.resolve(5);
    expect(await kept).toBe(5);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
