import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Authenticator, createAuthenticator } from '../../../src/platform/identity/authentication.ts';
import type { Caller } from '../../../src/platform/identity/caller.ts';
import { type WorkspaceRole, workspaceRoles } from '../../../src/platform/identity/permission.ts';
import {
  parseWorkspaceHeader,
  requireOrganization,
  requireWithin,
  standingIn,
} from '../../../src/platform/identity/standing.ts';
import type { Database } from '../../../src/platform/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { placeKey, placeMember, placeOrganization, placeWorkspace, placeWorkspaceMember } from './tenants.ts';

let database: TestDatabase;
let db: Database;
let authenticator: Authenticator;
let organizationId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  db = database.owner.db;
  authenticator = createAuthenticator({ now: () => Date.now() });
});
afterAll(async () => {
  await authenticator.settle();
  await database[Symbol.asyncDispose]();
});
beforeEach(async () => {
  organizationId = await placeOrganization(db);
});

async function callerOf(of: Parameters<typeof placeKey>[2]): Promise<Caller> {
  const { text } = await placeKey(db, organizationId, of);
  const credentials = { apiKey: text, bearer: undefined, peer: '192.0.2.1' };
  return authenticator.authenticate(database.store.db, credentials);
}

function stand(caller: Caller, header?: string): Promise<unknown> {
  return standingIn(database.store.db, caller, header, 'workspaces:read').then(
    ({ workspaceId, permissions }) => ({ workspaceId, permissions }),
    ({ kind, message }: { kind: unknown; message: unknown }) => ({ kind, message }),
  );
}

describe('in an organization', () => {
  it('a caller stands in his own, whatever the case of its id, and in no other', async () => {
    const caller = await callerOf({ role: 'ORGANIZATION_USER' });
    const other = await placeOrganization(db);
    requireOrganization(caller, undefined, 'organization:read');
    requireOrganization(caller, organizationId, 'organization:read');
    requireOrganization(caller, organizationId.toUpperCase(), undefined);
    const messages = [other, randomUUID(), 'nonsense', '', organizationId.slice(1)].map((header) => {
      try {
        return requireOrganization(caller, header, 'organization:read');
      } catch (error) {
        const { kind, message } = error as { kind: unknown; message: unknown };
        return `${String(kind)}: ${String(message)}`;
      }
    });
    expect(new Set(messages).size).toBe(1);
    expect(messages[0]).toMatch(/^forbidden: /);
  });

  it('a caller is refused what his role has not', async () => {
    const caller = await callerOf({ role: 'ORGANIZATION_USER' });
    expect(() => requireOrganization(caller, undefined, 'organization:manage')).toThrow(
      'This needs the permission organization:manage',
    );
  });
});

describe('in a workspace', () => {
  it('a key of it stands there with its role, named or not', async () => {
    const workspaceId = await placeWorkspace(db, organizationId);
    await placeWorkspace(db, organizationId);
    const roles = Object.keys(workspaceRoles) as WorkspaceRole[];
    for (const role of roles) {
      const caller = await callerOf({ workspaceId, role });
      const standing = { workspaceId, permissions: new Set(workspaceRoles[role]) };
      expect(await stand(caller)).toEqual(standing);
      expect(await stand(caller, workspaceId)).toEqual(standing);
    }
  });

  it('one that is unknown, foreign or not his is refused by the same words', async () => {
    const own = await placeWorkspace(db, organizationId);
    const sibling = await placeWorkspace(db, organizationId);
    const foreign = await placeWorkspace(db, await placeOrganization(db));
    const userId = await placeMember(db, organizationId, 'ORGANIZATION_USER');
    await placeWorkspaceMember(db, { organizationId, workspaceId: own, userId }, 'WORKSPACE_ADMIN');
    const bound = await callerOf({ workspaceId: own, role: 'WORKSPACE_ADMIN' });
    const member = await callerOf({ userId });
    const admin = await callerOf({ role: 'ORGANIZATION_ADMIN' });
    const refusals = [
      await stand(bound, sibling),
      await stand(bound, foreign),
      await stand(bound, randomUUID()),
      await stand(member, sibling),
      await stand(member, foreign),
      await stand(member, randomUUID()),
      await stand(admin, foreign),
      await stand(admin, randomUUID()),
    ];
    expect(refusals[0]).toMatchObject({ kind: 'forbidden' });
    expect(new Set(refusals.map((refusal) => JSON.stringify(refusal))).size).toBe(1);
  });

  it('without a name it is the only one that he sees, and must be named when there are more', async () => {
    const first = await placeWorkspace(db, organizationId);
    const userId = await placeMember(db, organizationId, 'ORGANIZATION_USER');
    const member = await callerOf({ userId });
    const admin = await callerOf({ role: 'ORGANIZATION_OPERATOR' });
    expect(await stand(member)).toMatchObject({ kind: 'forbidden' });
    expect(await stand(admin)).toMatchObject({ workspaceId: first });

    const second = await placeWorkspace(db, organizationId);
    await placeWorkspaceMember(db, { organizationId, workspaceId: second, userId }, 'WORKSPACE_VIEWER');
    expect(await stand(member)).toEqual({
      workspaceId: second,
      permissions: new Set(workspaceRoles.WORKSPACE_VIEWER),
    });
    expect(await stand(admin)).toMatchObject({
      kind: 'unusable',
      message: /requires workspace specification/,
    });
    expect(await stand(admin, second)).toMatchObject({ workspaceId: second });
  });

  it('a viewer may not what its role has not', async () => {
    const workspaceId = await placeWorkspace(db, organizationId);
    const caller = await callerOf({ workspaceId, role: 'WORKSPACE_VIEWER' });
    await expect(standingIn(db, caller, undefined, 'WORKSPACES_MANAGE')).rejects.toMatchObject({
      kind: 'forbidden',
      message: 'This needs the permission WORKSPACES_MANAGE',
    });
  });

  it('a member who left the organization has no place left, nor when he comes back', async () => {
    const workspaceId = await placeWorkspace(db, organizationId);
    const userId = await placeMember(db, organizationId, 'ORGANIZATION_USER');
    await placeWorkspaceMember(db, { organizationId, workspaceId, userId }, 'WORKSPACE_ADMIN');
    const before = await callerOf({ userId });
    await db.deleteFrom('organization_members').where('user_id', '=', userId).execute();
    const row = { organization_id: organizationId, user_id: userId, role: 'ORGANIZATION_USER' };
    await db.insertInto('organization_members').values(row).execute();
    expect(await stand(before, workspaceId)).toMatchObject({ kind: 'forbidden' });
  });
});

describe('X-Tenant-Id', () => {
  it('is a UUID or absent', () => {
    const id = randomUUID();
    expect(parseWorkspaceHeader(undefined)).toEqual({ ok: true, value: undefined });
    expect(parseWorkspaceHeader(id.toUpperCase())).toEqual({ ok: true, value: id });
    for (const text of ['', 'nonsense', `${id}, ${id}`, `{${id}}`]) {
      const parsed = parseWorkspaceHeader(text);
      expect(parsed).toMatchObject({ ok: false, issues: [{ loc: ['header', 'X-Tenant-Id'] }] });
      if (text !== '') expect(JSON.stringify(parsed)).not.toContain(text);
    }
  });
});

describe('what is given away', () => {
  it('is never more than what is held', () => {
    const held = new Set(['workspaces:read', 'sandboxes:read'] as const);
    expect(() => requireWithin(held, new Set())).not.toThrow();
    expect(() => requireWithin(held, held)).not.toThrow();
    expect(() => requireWithin(held, new Set(['workspaces:read', 'sandboxes:manage']))).toThrow(
      'This role may do more',
    );
  });
});
