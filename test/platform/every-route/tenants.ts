// Organizations with workspaces and somebody who may do everything in each, made straight in the tables.
import type { PlatformApi } from '../../support/platform-api.ts';

/** A workspace, its organization, and those who may do everything there. */
export type Place = {
  readonly organizationId: string;
  readonly workspaceId: string;
  /** An administrator of the organization who is a user. */
  readonly admin: { readonly userId: string; readonly key: string };
  /** The same as a service key. */
  readonly organizationKey: string;
  /** Bound to the workspace, and an administrator there. */
  readonly workspaceKey: string;
  /** Of a user who is nobody in the organization, and an administrator of the workspace. */
  readonly memberKey: string;
};

export async function createPlace(api: PlatformApi, inOrganization?: string): Promise<Place> {
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
