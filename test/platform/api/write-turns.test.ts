// Writes of one organization wait for each other; nobody else waits for them.
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createWriteTurns } from '../../../src/platform/api/write-turns.ts';
import type { Store, Transaction } from '../../../src/platform/store/database.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createPlatformApi } from '../../support/platform-api.ts';

const store: Pick<Store, 'write'> = { write: (work) => work({} as Transaction) };

describe('turns', () => {
  it('are given in the order of asking, so many at a time', async () => {
    const write = createWriteTurns(store, { ofOne: 2, waitMs: 60_000 });
    const begun: number[] = [];
    const ends = Array.from({ length: 5 }, () => Promise.withResolvers<number>());
    const all = ends.map(({ promise }, at) =>
      write('one', () => {
        begun.push(at);
        return promise;
      }),
    );
    expect(await write('another', async () => 'at once')).toBe('at once');
    expect(begun).toEqual([0, 1]);
    for (const [at, { resolve }] of ends.entries()) {
      resolve(at);
      expect(await all[at]).toBe(at);
    }
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });

  it('are handed on by who fails, and by nobody who left the line', async () => {
    const write = createWriteTurns(store, { ofOne: 1, waitMs: 1 });
    const end = Promise.withResolvers<void>();
    const first = write('one', () => end.promise);
    await expect(write('one', async () => 'never')).rejects.toMatchObject({
      kind: 'too_many',
      retryMs: 1000,
    });
    end.reject(new Error('failed'));
    await expect(first).rejects.toThrow('failed');
    expect(await write('one', async () => 'next')).toBe('next');
  });
});

it('an organization whose writes are held up holds up no other', async () => {
  await using api = await createPlatformApi();
  const [busy, other] = [await api.addOrganization(), await api.addOrganization()];
  const keys = await Promise.all(
    [busy, other].map(async (id) => api.addServiceKey(id, 'WORKSPACE_ADMIN', await api.addWorkspace(id))),
  );
  const create = (key = ''): Promise<{ readonly status: number }> =>
    api.ask('POST', '/v2/listeners', {
      key,
      body: { compute_type: 'k8s', compute_id: randomUUID(), compute_config: {} },
    });
  expect((await create(keys[0])).status).toBe(201);
  const held = await api.database.owner.db.startTransaction().execute();
  await sql`select from audit_heads where organization_id = ${busy} for update`.execute(held);
  // More than the platform has connections here.
  const waiting = Array.from({ length: 20 }, () => create(keys[0]));
  for (let count = 0; count < 5; count += 1) expect((await create(keys[1])).status).toBe(201);
  await held.rollback().execute();
  for (const { status } of await Promise.all(waiting)) expect(status).toBe(201);
});
