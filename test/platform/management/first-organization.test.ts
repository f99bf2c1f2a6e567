import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import { createAuthenticator } from '../../../src/platform/identity/authentication.ts';
import { createFirstOrganization, type FirstOrganization } from '../../../src/platform/identity/bootstrap.ts';
import { standingIn } from '../../../src/platform/identity/standing.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await database.owner.db.deleteFrom('organizations').execute();
});

function create(key?: string): Promise<FirstOrganization> {
  return database.store.write((trx) => createFirstOrganization(trx, { name: 'Acme', key }));
}

describe('the first organization', () => {
  it('is made with a workspace and a key that may do everything', async () => {
    const made = await create();
    const authenticator = createAuthenticator({ now: () => Date.now() });
    const { db } = database.store;
    const credentials = { apiKey: made.reported, bearer: undefined, peer: '192.0.2.1' };
    const caller = await authenticator.authenticate(db, credentials);
    expect(caller.keyId).toBe(made.keyId);
    expect(caller.organization).toEqual({
      id: made.organizationId,
      isPersonal: false,
      plan: 'enterprise',
      config: { can_use_audit_logs: true },
    });
    expect(caller.permissions.has('organization:manage')).toBe(true);
    const standing = await standingIn(db, caller, undefined, 'WORKSPACES_MANAGE');
    expect(standing.workspaceId).toBe(made.workspaceId);
    await authenticator.settle();
  });

  it('takes a key that was made before, and does not tell it again', async () => {
    const { text } = mintKey('service');
    const made = await create(text);
    expect(made.reported).toBeUndefined();
    const authenticator = createAuthenticator({ now: () => Date.now() });
    const credentials = { apiKey: text, bearer: undefined, peer: '192.0.2.1' };
    const caller = await authenticator.authenticate(database.store.db, credentials);
    expect(caller.keyId).toBe(made.keyId);
    await authenticator.settle();
  });

  it.each([
    ['a guessable text', 'letmein'],
    ['a key of a person', mintKey('personal').text],
    ['a key with a typo', `${mintKey('service').text.slice(0, -1)}_`],
    ['nothing', ''],
  ])('does not take %s for a key, nor repeats it, and makes nothing', async (_, text) => {
    const error = await create(text).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ kind: 'unusable' });
    if (text !== '') expect(String(error)).not.toContain(text);
    expect(await database.owner.db.selectFrom('organizations').select('id').execute()).toEqual([]);
  });

  it('is refused when there is one', async () => {
    await create();
    await expect(create()).rejects.toMatchObject({ kind: 'conflict' });
  });

  it('is made once when many processes make it at the same time', async () => {
    const tries = await Promise.allSettled(Array.from({ length: 8 }, () => create()));
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await database.owner.db.selectFrom('organizations').select('id').execute()).toHaveLength(1);
    expect(await database.owner.db.selectFrom('api_keys').select('id').execute()).toHaveLength(1);
  });
});
