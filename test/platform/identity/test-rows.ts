// Inserts organizations, workspaces, members and keys directly into the tables and returns their ids.
import { randomUUID } from 'node:crypto';
import { type KeyKind, mintKey } from '../../../src/platform/identity/api-key.ts';
import type { OrganizationRole, WorkspaceRole } from '../../../src/platform/identity/permission.ts';
import type { Database } from '../../../src/platform/store/database.ts';

export type InsertedKey = { readonly id: string; readonly text: string };

export async function insertOrganization(db: Database): Promise<string> {
  const row = { display_name: 'Acme', plan: 'enterprise', config: '{}' };
  return (await db.insertInto('organizations').values(row).returning('id').executeTakeFirstOrThrow()).id;
}

export async function insertWorkspace(db: Database, organizationId: string): Promise<string> {
  const row = { organization_id: organizationId, display_name: randomUUID(), tenant_handle: null };
  return (await db.insertInto('workspaces').values(row).returning('id').executeTakeFirstOrThrow()).id;
}

/** The id of the user. */
export async function insertMember(
  db: Database,
  organizationId: string,
  role: OrganizationRole,
): Promise<string> {
  const user = await db
    .insertInto('users')
    .values({ email: `${randomUUID()}@example.test` })
    .returning('id')
    .executeTakeFirstOrThrow();
  const row = { organization_id: organizationId, user_id: user.id, role, full_name: null };
  await db.insertInto('organization_members').values(row).execute();
  return user.id;
}

export async function insertWorkspaceMember(
  db: Database,
  scope: { readonly organizationId: string; readonly workspaceId: string; readonly userId: string },
  role: WorkspaceRole,
): Promise<void> {
  const { organizationId, workspaceId, userId } = scope;
  const row = { organization_id: organizationId, workspace_id: workspaceId, user_id: userId, role };
  await db.insertInto('workspace_members').values(row).execute();
}

export async function insertKey(
  db: Database,
  organizationId: string,
  of: {
    readonly workspaceId?: string;
    readonly userId?: string;
    readonly role?: string;
    readonly expiresAt?: Date;
    readonly home?: string;
  },
): Promise<InsertedKey> {
  const kind: KeyKind = of.userId === undefined ? 'service' : 'personal';
  const { text, hash, shortKey } = mintKey(kind);
  const { id } = await db
    .insertInto('api_keys')
    .values({
      kind,
      organization_id: organizationId,
      workspace_id: of.workspaceId ?? null,
      user_id: of.userId ?? null,
      role: of.role ?? null,
      short_key: shortKey,
      hash,
      description: 'a test',
      expires_at: of.expiresAt ?? null,
      home_workspace_id: of.home ?? null,
      last_used_at: null,
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  return { id, text };
}
