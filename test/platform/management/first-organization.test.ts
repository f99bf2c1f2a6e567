import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import { createAuthenticator } from '../../../src/platform/identity/authentication.ts';
import { authorizeInWorkspace } from '../../../src/platform/identity/authorization.ts';
import {
  createFirstOrganization,
  type NewOrganization,
} from '../../../src/platform/management/first-organization.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await database.owner.db.deleteFrom('organizations').execute();
});

function create(key?: string): Promise<NewOrganization> {
  return database.store.write((trx) => createFirstOrganization(trx, { name: 'Acme', key }));
}

describe('the first organization', () => {
  it('is created with a workspace and a key that has all permissions', async () => {
    const made = await create();
    const authenticator = createAuthenticator({ now: () => Date.now() });
    const { db } = database.store;
    const credentials = { apiKey: made.createdKey, bearer: undefined, peer: '192.0.2.1' };
    const caller = await authenticator.authenticate(db, credentials);
    expect(caller.keyId).toBe(made.keyId);
    expect(caller.organization).toEqual({
      id: made.organizationId,
      isPersonal: false,
      plan: 'enterprise',
      config: { can_use_audit_logs: true },
    });
    expect(caller.permissions.has('organization:manage')).toBe(true);
    const grant = await authorizeInWorkspace(db, caller, undefined, 'WORKSPACES_MANAGE');
    expect(grant.workspaceId).toBe(made.workspaceId);
    // Also when there are two workspaces: the first one is the home of the key.
    const row = { organization_id: made.organizationId, display_name: 'Second', tenant_handle: null };
    await database.owner.db.insertInto('workspaces').values(row).execute();
    expect(await authorizeInWorkspace(db, caller, undefined, 'WORKSPACES_MANAGE')).toEqual(grant);
    await authenticator.settle();
  });

  it('accepts a key that was created before, and does not return it again', async () => {
    const { text } = mintKey('service');
    const made = await create(text);
    expect(made.createdKey).toBeUndefined();
    const authenticator = createAuthenticator({ now: () => Date.now() });
    const credentials = { apiKey: text, bearer: undefined, peer: '192.0.2.1' };
    const caller = await authenticator.authenticate(database.store.db, credentials);
    expect(caller.keyId).toBe(made.keyId);
    await authenticator.settle();
  });

  it.each([
    ['a guessable text', 'letmein'],
    ['a personal token', mintKey('personal').text],
    ['a key with a typo', `${mintKey('service').text.slice(0, -1)}_`],
    ['an empty text', ''],
  ])('rejects %s as its key without repeating it, and creates nothing', async (_, text) => {
    const error = await create(text).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ kind: 'unusable' });
    if (text !== '') expect(String(error)).not.toContain(text);
    expect(await database.owner.db.selectFrom('organizations').select('id').execute()).toEqual([]);
  });

  it('is rejected when an organization exists', async () => {
    await create();
    await expect(create()).rejects.toMatchObject({ kind: 'conflict' });
  });

  it('is created once when many processes try at the same time', async () => {
    const tries = await Promise.allSettled(Array.from({ length: 8 }, () => create()));
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await database.owner.db.selectFrom('organizations').select('id').execute()).toHaveLength(1);
    expect(await database.owner.db.selectFrom('api_keys').select('id').execute()).toHaveLength(1);
  });
});
