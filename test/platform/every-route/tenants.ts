// Organizations with workspaces and callers with all permissions, inserted directly into the tables.
import type { PlatformApi } from '../../support/platform-api.ts';

/** A workspace, its organization, and callers with all permissions there. */
export type Tenant = {
  readonly organizationId: string;
  readonly workspaceId: string;
  /** An administrator of the organization who is a user. */
  readonly admin: { readonly userId: string; readonly key: string };
  /** A service key with the same permissions. */
  readonly organizationKey: string;
  /** Bound to the workspace, and an administrator there. */
  readonly workspaceKey: string;
  /** Of a user without administrative permissions in the organization who is an administrator of the workspace. */
  readonly memberKey: string;
};

export async function createTenant(api: PlatformApi, inOrganization?: string): Promise<Tenant> {
  const organizationId = inOrganization ?? (await api.addOrganization());
  const workspaceId = await api.addWorkspace(organizationId);
  const key = await api.addMemberKey(organizationId, 'ORGANIZATION_ADMIN');
  return {
    organizationId,
    workspaceId,
    admin: { key, userId: await newestMember(api, organizationId) },
    organizationKey: await api.addServiceKey(organizationId, 'ORGANIZATION_ADMIN'),
    workspaceKey: await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId),
    memberKey: await api.addMemberKey(organizationId, 'ORGANIZATION_USER', {
      id: workspaceId,
      role: 'WORKSPACE_ADMIN',
    }),
  };
}

export async function newestMember({ database }: PlatformApi, organizationId: string): Promise<string> {
  const { user_id } = await database.owner.db
    .selectFrom('organization_members')
    .select('user_id')
    .where('organization_id', '=', organizationId)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();
  return user_id;
}
