// `sallyport platform organization`: what an operator creates and sets, and the events that it leaves.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { runSallyport } from '../../support/platform-process.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import type { Finished } from '../../support/spawned-process.ts';
import { everyNth } from '../../support/run-size.ts';

let database: TestDatabase;
let scratch: Scratch;
beforeAll(async () => {
  database = await createTestDatabase();
  scratch = await createScratch();
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
  await scratch[Symbol.asyncDispose]();
});

function organization(...args: readonly string[]): Promise<Finished> {
  return runSallyport(['platform', 'organization', ...args], {
    dataDirectory: join(scratch.path, 'data'),
    database: { url: database.url, ownerUrl: database.ownerUrl },
  });
}

async function readOrganization(id: string): Promise<unknown> {
  const columns = ['display_name', 'plan', 'is_personal', 'config'] as const;
  const found = database.owner.db.selectFrom('organizations').select(columns).where('id', '=', id);
  return found.executeTakeFirstOrThrow();
}

async function readOperations(id: string): Promise<readonly string[]> {
  const found = database.owner.db.selectFrom('audit_events').select('operation').orderBy('seq');
  return (await found.where('organization_id', '=', id).execute()).map(({ operation }) => operation);
}

describe('sallyport platform organization', () => {
  it('creates an organization with a workspace and a key, and sets its plan and flags', async () => {
    const created = await organization('create', '--name', 'Second');
    expect([created.code, created.stdout]).toEqual([0, expect.stringMatching(/^sp_sk_[0-9A-Za-z]{49}\n$/)]);
    const id = /^organization (\S+)$/m.exec(created.stderr)?.[1] ?? '';
    expect(await readOrganization(id)).toEqual({
      display_name: 'Second',
      plan: 'enterprise',
      is_personal: false,
      config: { can_use_audit_logs: true },
    });
    const changes = ['--name', 'Two', '--plan', 'plus', '--personal', 'yes', '--audit-logs', 'no'];
    const set = await organization('set', '--organization', id, ...changes);
    expect({ code: set.code, stdout: set.stdout }).toEqual({ code: 0, stdout: '' });
    expect(set.stderr).toBe(
      `organization ${id}\nname         Two\nplan         plus\npersonal     yes\naudit logs   no\n`,
    );
    expect(await readOrganization(id)).toEqual({
      display_name: 'Two',
      plan: 'plus',
      is_personal: true,
      config: { can_use_audit_logs: false },
    });
    await database.owner.db
      .updateTable('organizations')
      .set({ config: JSON.stringify({ can_use_audit_logs: false, other: 1 }) })
      .where('id', '=', id)
      .execute();
    expect((await organization('set', '--organization', id, '--audit-logs', 'default')).code).toBe(0);
    expect(await readOrganization(id)).toMatchObject({
      plan: 'plus',
      is_personal: true,
      config: { other: 1 },
    });
    expect(await readOperations(id)).toEqual([
      'create_organization',
      'create_workspace',
      'create_service_key',
      'update_organization_info',
      'update_organization_info',
    ]);
  });

  everyNth(
    3,
    [
      [[], /missing action/],
      [['remove'], /unexpected argument/],
      [['create'], /--name NAME/],
      [['create', '--name', 'x', '--plan', 'Big Plan'], /--plan must be/],
      [['create', '--name', 'x', '--personal', 'maybe'], /--personal must be yes or no/],
      [['create', '--name', 'a\u202eb'], /no control characters/],
      [['set', '--name', 'x'], /--organization ID/],
      [['set', '--organization', 'x', '--name', 'x'], /--organization ID/],
      [['set', '--organization', '11111111-1111-4111-8111-111111111111'], /needs --name, --plan/],
      [
        ['set', '--organization', '11111111-1111-4111-8111-111111111111', '--plan', 'x'],
        /no organization with/,
      ],
    ] as const,
    (some, options) =>
      it.each(some)('%j is rejected, and the message says what to do', options, async (args, sentence) => {
        const rejected = await organization(...args);
        expect([rejected.code, rejected.stdout]).toEqual([2, '']);
        expect(rejected.stderr).toMatch(sentence);
      }),
  );
});
