import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  findWork,
  releaseLease,
  renewLease,
} from '../../../../src/platform/sandboxes/reconciliation/machine.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

describe('the lease of a machine', () => {
  it('belongs to one process until it is given back or runs out', async () => {
    const { db } = database.store;
    const machineId = randomUUID();
    const [one, two] = [randomUUID(), randomUUID()].map((holder) => ({ machineId, holder }));
    const tries = async (): Promise<readonly boolean[]> => [
      await renewLease(db, one!),
      await renewLease(db, two!),
    ];
    expect([await tries(), await tries()]).toEqual([
      [true, false],
      [true, false],
    ]);
    await releaseLease(db, two!);
    expect(await renewLease(db, two!)).toBe(false);
    await releaseLease(db, one!);
    expect([await renewLease(db, two!), await renewLease(db, one!)]).toEqual([true, false]);
    await sql`update box_machines set held_until = now() - interval '1 second' where id = ${machineId}`.execute(
      db,
    );
    expect([await renewLease(db, one!), await renewLease(db, two!)]).toEqual([true, false]);
  });
});

describe('the work of a machine', () => {
  it('is none where it only has a gateway and nobody has created a box or a snapshot', async () => {
    const { db } = database.owner;
    const id = randomUUID();
    await db.insertInto('box_machines').values({ id, gateway_url: 'http://127.0.0.1:8081' }).execute();
    expect(await findWork(db, id)).toBeUndefined();
    await db.updateTable('box_machines').set({ runtime: 'attached' }).where('id', '=', id).execute();
    expect(await findWork(db, id)).toBe(true);
  });

  it.each([
    ['that no machine has taken', null, true],
    ['of its own', 'own', true],
    ['of another machine', 'other', undefined],
  ] as const)('with a snapshot %s: %j, %j', async (_, of, expected) => {
    const { db } = database.owner;
    const id = randomUUID();
    const organization = { display_name: 'Acme', plan: 'enterprise', config: '{}' };
    const organizations = await db.insertInto('organizations').values(organization).returning('id').execute();
    const workspace = { organization_id: organizations[0]!.id, display_name: 'Main', tenant_handle: null };
    const workspaces = await db.insertInto('workspaces').values(workspace).returning('id').execute();
    const machine_id = of === 'own' ? id : of === 'other' ? randomUUID() : null;
    await sql`insert into snapshots (workspace_id, name, status, machine_id)
      values (${workspaces[0]!.id}, 'tools', 'ready', ${machine_id})`.execute(db);
    expect(await findWork(db, id)).toBe(expected);
    await db.deleteFrom('snapshots').execute();
  });
});
