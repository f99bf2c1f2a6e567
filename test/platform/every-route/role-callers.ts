// A caller for each role of A1, and what an operation does for callers that must not have it.
import {
  organizationRoles,
  type OrganizationRole,
  type Permission,
  workspaceRoles,
  type WorkspaceRole,
} from '../../../src/platform/identity/permission.ts';
import type { Ask } from '../../support/platform-api.ts';
import type { Operation } from './document.ts';
import { createExample, type EveryRoute, type Example, send, successOf } from './scene.ts';

/** A caller with one role, in the workspace A1. */
export type RoleCaller = {
  readonly who: string;
  readonly organizationRole: OrganizationRole | undefined;
  readonly workspaceRole: WorkspaceRole | undefined;
  readonly isUser: boolean;
  readonly as: Ask;
};

const inOrganizations = Object.keys(organizationRoles) as readonly OrganizationRole[];
const inWorkspaces = Object.keys(workspaceRoles) as readonly WorkspaceRole[];

export async function createRoleCallers({ api, a1 }: EveryRoute): Promise<readonly RoleCaller[]> {
  const { organizationId, workspaceId: tenant } = a1;
  const made: RoleCaller[] = [];
  for (const role of inOrganizations) {
    const one = { organizationRole: role, workspaceRole: undefined };
    const member = await api.addMemberKey(organizationId, role);
    made.push({ who: `a member, ${role}`, ...one, isUser: true, as: { key: member, tenant } });
    const key = await api.addServiceKey(organizationId, role);
    made.push({ who: `a key of the organization, ${role}`, ...one, isUser: false, as: { key, tenant } });
  }
  for (const role of inWorkspaces) {
    const weak = 'ORGANIZATION_VIEWER';
    const member = await api.addMemberKey(organizationId, weak, { id: tenant, role });
    const ofUser = { organizationRole: weak, workspaceRole: role, isUser: true } as const;
    made.push({ who: `a member, ${weak} and ${role}`, ...ofUser, as: { key: member, tenant } });
    const key = await api.addServiceKey(organizationId, role, tenant);
    const ofKey = { organizationRole: undefined, workspaceRole: role, isUser: false };
    made.push({ who: `a key of the workspace, ${role}`, ...ofKey, as: { key } });
  }
  return made;
}

const RENAMING = 'PATCH /api/v1/workspaces/{workspace_id}';

export function isAllowed(
  { organizationRole, workspaceRole, isUser }: RoleCaller,
  { route, path, title }: Operation,
): boolean {
  const { access } = route;
  if (access.to === 'anyone') return true;
  if (access.to === 'sandbox') return false;
  const inOrganization: readonly Permission[] = organizationRole ? organizationRoles[organizationRole] : [];
  const inWorkspace: readonly Permission[] = workspaceRole ? workspaceRoles[workspaceRole] : [];
  // A service key belongs to no user.
  if (path.startsWith('/api/v1/api-key/current') && !isUser) return false;
  // There the path names the workspace, not a header.
  if (title === RENAMING)
    return inOrganization.includes('organization:read') && inOrganization.includes('WORKSPACES_MANAGE');
  if (access.permission === undefined) return false;
  if (inOrganization.includes(access.permission)) return true;
  return access.to === 'workspace' && inWorkspace.includes(access.permission);
}

/** The callers that an operation serves and must not, or rejects and must serve. */
export async function findRoleDefects(
  scene: EveryRoute,
  callers: readonly RoleCaller[],
  operation: Operation,
): Promise<readonly unknown[]> {
  const { api, a1, digest } = scene;
  const found: unknown[] = [];
  const example = await createExample(api, operation, a1);
  const before = JSON.stringify(await digest.take());
  for (const { who, as } of callers.filter((caller) => !isAllowed(caller, operation))) {
    const { status, text } = await send(api, example, as);
    // A workspace that the caller cannot see is not found.
    const isUnseen = operation.title === RENAMING && status === 404;
    if (status !== 403 && !isUnseen) found.push([operation.title, who, status, text]);
  }
  if (before !== JSON.stringify(await digest.take()))
    found.push([operation.title, 'changed something for a caller without the role']);
  for (const caller of callers.filter((one) => isAllowed(one, operation))) {
    const { status, text } = await send(api, await createExampleFor(scene, operation, caller), caller.as);
    if (status !== successOf(operation)) found.push([operation.title, caller.who, status, text]);
  }
  return found;
}

/** A personal token in the path belongs to the caller. */
async function createExampleFor(
  { api, a1 }: EveryRoute,
  operation: Operation,
  caller: RoleCaller,
): Promise<Example> {
  if (!operation.path.startsWith('/api/v1/api-key/current') || !caller.isUser)
    return createExample(api, operation, a1);
  // Not every member sees the workspace that would be the home of their token.
  if (operation.method === 'POST') return { ...(await createExample(api, operation, a1)), body: {} };
  const { body } = await api.ask('POST', '/api/v1/api-key/current', { ...caller.as, body: {} });
  const admin = { ...a1.admin, userId: String(body.user_id) };
  return createExample(api, operation, { ...a1, admin });
}
