// Authorization: the permissions of a caller in their organization and in one workspace. A workspace that the caller
// cannot see and one that does not exist are rejected with the same message.
import { DomainError } from '../../base/domain-error.ts';
import { type Parsed, parseWith, z } from '../../base/schema.ts';
import type { Database } from '../store/database.ts';
import type { Caller } from './authentication.ts';
import { lockMembership } from './membership-lock.ts';
import { type Permission, permissionsOf } from './permission.ts';

/** The permissions of a caller in one workspace of their organization. */
export type WorkspaceGrant = { readonly workspaceId: string; readonly permissions: ReadonlySet<Permission> };

const workspaceHeader = z.uuid('Input must be a UUID').optional();

/** X-Tenant-Id. */
export function parseWorkspaceHeader(text: string | undefined): Parsed<string | undefined> {
  const parsed = parseWith(workspaceHeader, text, ['header', 'X-Tenant-Id']);
  return parsed.ok ? { ok: true, value: parsed.value?.toLowerCase() } : parsed;
}

/** `header` is X-Organization-Id, which is optional. Without a `permission`, only the header is checked. */
export function authorizeInOrganization(caller: Caller, header: string | undefined, permission?: Permission) {
  if (header !== undefined && header.toLowerCase() !== caller.organization.id)
    throw new DomainError('forbidden', WRONG_ORGANIZATION);
  if (permission !== undefined) requirePermission(caller.permissions, permission);
}

/**
 * The workspace is the one that `header` names; without it, that of the key, or its home. It is never a guess: who creates a
 * second workspace must not change what the requests of others do. Without a `permission`, only the access to it is checked.
 */
export async function authorizeInWorkspace(
  db: Database,
  caller: Caller,
  header: string | undefined,
  permission?: Permission,
): Promise<WorkspaceGrant> {
  const named = namedWorkspace(caller, header);
  if (named === undefined) throw new DomainError('forbidden', UNSPECIFIED);
  const isLocked = await lockWorkspaceRole(db, caller, named);
  // What was read with the key was read before the lock.
  const isKnown = caller.named?.workspaceId === named && !(isLocked && db.isTransaction);
  const grant = isKnown ? knownGrant(caller) : await findWorkspaceGrant(db, caller, named);
  if (grant === undefined) throw noWorkspace();
  if (permission !== undefined) requirePermission(grant.permissions, permission);
  return grant;
}

/**
 * Until the commit nobody can end the membership by which the caller works in the workspace, or change its role. False where
 * there is none: who sees all workspaces needs no membership of one.
 */
export async function lockWorkspaceRole(db: Database, caller: Caller, workspaceId: string): Promise<boolean> {
  const { userId } = caller;
  if (userId === undefined || !isLockedByRole(caller)) return false;
  await lockMembership(db, 'workspace_members', workspaceId, userId);
  return true;
}

/** Whether the caller works in a workspace by a membership of it. */
export function isLockedByRole({ userId, permissions }: Pick<Caller, 'userId' | 'permissions'>): boolean {
  return userId !== undefined && !permissions.has('workspaces:read');
}

/** Also the error for a workspace that is deleted while a request works in it. */
export function noWorkspace(): DomainError {
  return new DomainError('forbidden', 'Workspace not found, or this API key has no access to it');
}

const WRONG_ORGANIZATION = 'X-Organization-Id is not the organization of this API key: correct or remove it';
// Deploy commands look for the first words, and ask for the id then.
const UNSPECIFIED =
  'This request requires workspace specification: send the id of a workspace as X-Tenant-Id, or use a key with a home workspace';

/** Undefined when the caller cannot see the workspace, or it belongs to another organization or does not exist. */
export async function findWorkspaceGrant(
  db: Database,
  caller: Caller,
  workspaceId: string,
): Promise<WorkspaceGrant | undefined> {
  const seesAll = caller.permissions.has('workspaces:read');
  const row = await db
    .selectFrom('workspaces as w')
    .leftJoin('workspace_members as m', (join) =>
      join.onRef('m.workspace_id', '=', 'w.id').on('m.user_id', '=', caller.userId ?? null),
    )
    .leftJoin('api_keys as k', (join) =>
      join.onRef('k.workspace_id', '=', 'w.id').on('k.id', '=', caller.keyId).on('k.kind', '=', 'service'),
    )
    .select(['w.id', 'm.role as member_role', 'k.role as key_role'])
    .where('w.organization_id', '=', caller.organization.id)
    .where('w.id', '=', workspaceId)
    .$if(!seesAll, (query) =>
      query.where((eb) => eb.or([eb('m.role', 'is not', null), eb('k.role', 'is not', null)])),
    )
    .executeTakeFirst();
  return row && toGrant(caller, { workspaceId: row.id, role: row.member_role ?? row.key_role });
}

/** The same without a statement; undefined also where only a statement can say. */
export function knownGrantIn(caller: Caller, header: string | undefined): WorkspaceGrant | undefined {
  const { named } = caller;
  return named?.workspaceId === namedWorkspace(caller, header) ? knownGrant(caller) : undefined;
}

function namedWorkspace({ boundTo, home }: Caller, header: string | undefined): string | undefined {
  return header ?? boundTo ?? home;
}

/** The grant in the workspace that was read with the key. */
function knownGrant(caller: Caller): WorkspaceGrant | undefined {
  const { named, permissions } = caller;
  const isVisible = named !== undefined && (named.role !== null || permissions.has('workspaces:read'));
  return isVisible ? toGrant(caller, named) : undefined;
}

function toGrant(
  { permissions }: Caller,
  { workspaceId, role }: { readonly workspaceId: string; readonly role: string | null },
): WorkspaceGrant {
  const own = permissionsOf('workspace', role);
  if (!permissions.has('workspaces:read')) return { workspaceId, permissions: own };
  return { workspaceId, permissions: own.isSubsetOf(permissions) ? permissions : permissions.union(own) };
}

export function requirePermission(own: ReadonlySet<Permission>, required: Permission): void {
  if (!own.has(required))
    throw new DomainError('forbidden', `This request requires the permission ${required}`);
}

/** Callers cannot assign or take away more than they have: a key must be no way to more permissions. */
export function requireNoEscalation(own: ReadonlySet<Permission>, other: ReadonlySet<Permission>): void {
  if (!other.isSubsetOf(own))
    throw new DomainError('forbidden', 'This role has more permissions than your API key');
}

/** A key that ends must be no way to a key or token that does not, except for callers who could create any key. */
export function requireWithinLife({ expiresAt, permissions }: Caller, wanted: Date | null): void {
  if (expiresAt === undefined || permissions.has('organization:manage')) return;
  if (wanted === null || wanted > expiresAt)
    throw new DomainError(
      'forbidden',
      `expires_at must not be later than that of your API key: ${expiresAt.toISOString()}`,
    );
}
