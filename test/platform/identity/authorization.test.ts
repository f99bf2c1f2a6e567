import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Authenticator,
  type Caller,
  type Credentials,
  createAuthenticator,
} from '../../../src/platform/identity/authentication.ts';
import {
  authorizeInOrganization,
  authorizeInWorkspace,
  parseWorkspaceHeader,
  requireNoEscalation,
} from '../../../src/platform/identity/authorization.ts';
import { type WorkspaceRole, workspaceRoles } from '../../../src/platform/identity/permission.ts';
import type { Database } from '../../../src/platform/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import {
  type InsertedKey,
  insertKey,
  insertMember,
  insertOrganization,
  insertWorkspace,
  insertWorkspaceMember,
} from './test-rows.ts';

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
  organizationId = await insertOrganization(db);
});

async function callerOf(of: Parameters<typeof insertKey>[2]): Promise<Caller> {
  return authenticator.authenticate(
    database.store.db,
    credentialsOf(await insertKey(db, organizationId, of)),
  );
}

function credentialsOf({ text }: InsertedKey): Credentials {
  return { apiKey: text, bearer: undefined, peer: '192.0.2.1' };
}

function authorize(caller: Caller, header?: string): Promise<unknown> {
  return authorizeInWorkspace(database.store.db, caller, header, 'workspaces:read').then(
    ({ workspaceId, permissions }) => ({ workspaceId, permissions }),
    ({ kind, message }: { kind: unknown; message: unknown }) => ({ kind, message }),
  );
}

describe('access to an organization', () => {
  it('is given for the own organization of a caller, in any case of its id, and for no other', async () => {
    const caller = await callerOf({ role: 'ORGANIZATION_USER' });
    const other = await insertOrganization(db);
    authorizeInOrganization(caller, undefined, 'organization:read');
    authorizeInOrganization(caller, organizationId, 'organization:read');
    authorizeInOrganization(caller, organizationId.toUpperCase());
    const messages = [other, randomUUID(), 'nonsense', '', organizationId.slice(1)].map((header) => {
      try {
        return authorizeInOrganization(caller, header, 'organization:read');
      } catch (error) {
        const { kind, message } = error as { kind: unknown; message: unknown };
        return `${String(kind)}: ${String(message)}`;
      }
    });
    expect(new Set(messages).size).toBe(1);
    expect(messages[0]).toMatch(/^forbidden: /);
  });

  it('is denied when the role lacks the permission', async () => {
    const caller = await callerOf({ role: 'ORGANIZATION_USER' });
    expect(() => authorizeInOrganization(caller, undefined, 'organization:manage')).toThrow(
      'This request requires the permission organization:manage',
    );
  });
});

describe('access to a workspace', () => {
  it('is given to a key of the workspace with the permissions of its role, with the header or without', async () => {
    const workspaceId = await insertWorkspace(db, organizationId);
    await insertWorkspace(db, organizationId);
    const roles = Object.keys(workspaceRoles) as WorkspaceRole[];
    for (const role of roles) {
      const caller = await callerOf({ workspaceId, role });
      const grant = { workspaceId, permissions: new Set(workspaceRoles[role]) };
      expect(await authorize(caller)).toEqual(grant);
      expect(await authorize(caller, workspaceId)).toEqual(grant);
    }
  });

  it('is denied with the same message for a workspace that is unknown, foreign or not visible', async () => {
    const own = await insertWorkspace(db, organizationId);
    const sibling = await insertWorkspace(db, organizationId);
    const foreign = await insertWorkspace(db, await insertOrganization(db));
    const userId = await insertMember(db, organizationId, 'ORGANIZATION_USER');
    await insertWorkspaceMember(db, { organizationId, workspaceId: own, userId }, 'WORKSPACE_ADMIN');
    const bound = await callerOf({ workspaceId: own, role: 'WORKSPACE_ADMIN' });
    const member = await callerOf({ userId });
    const admin = await callerOf({ role: 'ORGANIZATION_ADMIN' });
    const refusals = [
      await authorize(bound, sibling),
      await authorize(bound, foreign),
      await authorize(bound, randomUUID()),
      await authorize(member, sibling),
      await authorize(member, foreign),
      await authorize(member, randomUUID()),
      await authorize(admin, foreign),
      await authorize(admin, randomUUID()),
    ];
    expect(refusals[0]).toMatchObject({ kind: 'forbidden' });
    expect(new Set(refusals.map((refusal) => JSON.stringify(refusal))).size).toBe(1);
  });

  it('without the header is given to the home workspace of a key, and to no other, however many there are', async () => {
    const first = await insertWorkspace(db, organizationId);
    const userId = await insertMember(db, organizationId, 'ORGANIZATION_USER');
    await insertWorkspaceMember(db, { organizationId, workspaceId: first, userId }, 'WORKSPACE_VIEWER');
    const unspecified = {
      kind: 'forbidden',
      message: expect.stringContaining('requires workspace specification'),
    };
    for (const homeless of [{ userId }, { role: 'ORGANIZATION_OPERATOR' }])
      expect(await authorize(await callerOf(homeless))).toEqual(unspecified);
    const member = await callerOf({ userId, home: first });
    const admin = await callerOf({ role: 'ORGANIZATION_ADMIN', home: first });
    const second = await insertWorkspace(db, organizationId);
    expect(await authorize(member)).toEqual({
      workspaceId: first,
      permissions: new Set(workspaceRoles.WORKSPACE_VIEWER),
    });
    expect(await authorize(admin)).toMatchObject({ workspaceId: first });
    expect(await authorize(admin, second)).toMatchObject({ workspaceId: second });
    expect(await authorize(member, second)).toMatchObject({ kind: 'forbidden' });
  });

  it('is denied without the header once the home workspace is deleted, or the user is no member of it any more', async () => {
    const home = await insertWorkspace(db, organizationId);
    await insertWorkspace(db, organizationId);
    const userId = await insertMember(db, organizationId, 'ORGANIZATION_USER');
    await insertWorkspaceMember(db, { organizationId, workspaceId: home, userId }, 'WORKSPACE_ADMIN');
    const admin = await insertKey(db, organizationId, { role: 'ORGANIZATION_ADMIN', home });
    await db.deleteFrom('workspace_members').where('user_id', '=', userId).execute();
    const member = await callerOf({ userId, home });
    expect(await authorize(member)).toMatchObject({ kind: 'forbidden', message: /^Workspace not found/ });
    await db.deleteFrom('workspaces').where('id', '=', home).execute();
    const after = await authenticator.authenticate(database.store.db, credentialsOf(admin));
    expect(await authorize(after)).toMatchObject({
      kind: 'forbidden',
      message: expect.stringContaining('requires workspace specification'),
    });
  });

  it('has no home in another organization', async () => {
    const foreign = await insertWorkspace(db, await insertOrganization(db));
    await expect(callerOf({ role: 'ORGANIZATION_ADMIN', home: foreign })).rejects.toThrow('foreign key');
  });

  it('is denied to a viewer for a permission that the role lacks', async () => {
    const workspaceId = await insertWorkspace(db, organizationId);
    const caller = await callerOf({ workspaceId, role: 'WORKSPACE_VIEWER' });
    await expect(authorizeInWorkspace(db, caller, undefined, 'WORKSPACES_MANAGE')).rejects.toMatchObject({
      kind: 'forbidden',
      message: 'This request requires the permission WORKSPACES_MANAGE',
    });
  });

  it('ends when a member leaves the organization, and does not come back when they are added again', async () => {
    const workspaceId = await insertWorkspace(db, organizationId);
    const userId = await insertMember(db, organizationId, 'ORGANIZATION_USER');
    await insertWorkspaceMember(db, { organizationId, workspaceId, userId }, 'WORKSPACE_ADMIN');
    const before = await callerOf({ userId });
    await db.deleteFrom('organization_members').where('user_id', '=', userId).execute();
    const row = { organization_id: organizationId, user_id: userId, role: 'ORGANIZATION_USER' };
    await db.insertInto('organization_members').values(row).execute();
    expect(await authorize(before, workspaceId)).toMatchObject({ kind: 'forbidden' });
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

describe('an assigned role', () => {
  it('never has more permissions than the caller', () => {
    const own = new Set(['workspaces:read', 'sandboxes:read'] as const);
    expect(() => requireNoEscalation(own, new Set())).not.toThrow();
    expect(() => requireNoEscalation(own, own)).not.toThrow();
    expect(() => requireNoEscalation(own, new Set(['workspaces:read', 'sandboxes:manage']))).toThrow(
      'This role has more permissions',
    );
  });
});
