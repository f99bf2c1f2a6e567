// Where a caller stands: in his organization, and in which of its workspaces with what permissions. What he may not see
// and what is not there are refused by the same words. It must not know what he wants to do.
import { DomainError } from '../../base/domain-error.ts';
import { type Parsed, parseWith, z } from '../../base/schema.ts';
import type { Database } from '../store/database.ts';
import type { Caller, Standing } from './caller.ts';
import { type Permission, permissionsOf } from './permission.ts';

const workspaceHeader: z.ZodOptional<z.ZodUUID> = z.uuid('Input should be a UUID').optional();

/** X-Tenant-Id. */
export function parseWorkspaceHeader(text: string | undefined): Parsed<string | undefined> {
  const parsed = parseWith(workspaceHeader, text, ['header', 'X-Tenant-Id']);
  return parsed.ok ? { ok: true, value: parsed.value?.toLowerCase() } : parsed;
}

/** X-Organization-Id may be absent; `permission` undefined asks for none. */
export function requireOrganization(
  caller: Caller,
  header: string | undefined,
  permission: Permission | undefined,
): void {
  if (header !== undefined && header.toLowerCase() !== caller.organization.id)
    throw new DomainError('forbidden', 'This key does not belong to the organization of X-Organization-Id');
  if (permission !== undefined) requirePermission(caller.permissions, permission);
}

/** In the workspace that `header` names; else in that of the key, or in the only one that the caller sees. */
export async function standingIn(
  db: Database,
  caller: Caller,
  header: string | undefined,
  permission: Permission,
): Promise<Standing> {
  const [standing, another] = await findStandings(db, caller, header ?? caller.boundTo);
  if (standing === undefined) throw noWorkspace();
  if (another !== undefined) throw new DomainError('unusable', UNSPECIFIED);
  requirePermission(standing.permissions, permission);
  return standing;
}

/** The same for one that goes while it is worked in. */
export function noWorkspace(): DomainError {
  return new DomainError('forbidden', 'There is no such workspace, or this key has no access to it');
}

const UNSPECIFIED =
  'This requires workspace specification: this key sees more than one, so send the id of one as X-Tenant-Id';

/** Undefined where the caller does not see the workspace, or it is of another organization, or nowhere. */
export async function findStanding(
  db: Database,
  caller: Caller,
  workspaceId: string,
): Promise<Standing | undefined> {
  const [standing] = await findStandings(db, caller, workspaceId);
  return standing;
}

/** At most two: more than one is all that need be known. */
async function findStandings(
  db: Database,
  caller: Caller,
  named: string | undefined,
): Promise<readonly Standing[]> {
  const isEverywhere = caller.permissions.has('workspaces:read');
  const rows = await db
    .selectFrom('workspaces as w')
    .leftJoin('workspace_members as m', (join) =>
      join.onRef('m.workspace_id', '=', 'w.id').on('m.user_id', '=', caller.userId ?? null),
    )
    .leftJoin('api_keys as k', (join) =>
      join.onRef('k.workspace_id', '=', 'w.id').on('k.id', '=', caller.keyId).on('k.kind', '=', 'service'),
    )
    .select(['w.id', 'm.role as member_role', 'k.role as key_role'])
    .where('w.organization_id', '=', caller.organization.id)
    .$if(named !== undefined, (query) => query.where('w.id', '=', named!))
    .$if(!isEverywhere, (query) =>
      query.where((eb) => eb.or([eb('m.role', 'is not', null), eb('k.role', 'is not', null)])),
    )
    .limit(2)
    .execute();
  const everywhere = isEverywhere ? caller.permissions : [];
  return rows.map(({ id, member_role, key_role }) => {
    const own = permissionsOf('workspace', member_role ?? key_role);
    return { workspaceId: id, permissions: new Set([...everywhere, ...own]) };
  });
}

export function requirePermission(held: ReadonlySet<Permission>, needed: Permission): void {
  if (!held.has(needed)) throw new DomainError('forbidden', `This needs the permission ${needed}`);
}

/** Nobody may give away more than he has: else a key would be a way to more. */
export function requireWithin(held: ReadonlySet<Permission>, given: ReadonlySet<Permission>): void {
  if (!given.isSubsetOf(held))
    throw new DomainError('forbidden', 'This role may do more than the key that would give it');
}
