// Which of many grants have ended: their key is revoked or has expired, so is their session, or its owner has lost the role or the workspace. One
// query for all of them, by the same rules by which a caller is authenticated and authorized.
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import type { Caller } from './authentication.ts';
import { type Permission, permissionsOf } from './permission.ts';

/** What a caller was granted, in a workspace or in the organization itself. */
export type HeldGrant = {
  readonly caller: Caller;
  readonly workspaceId?: string;
  readonly permission: Permission | undefined;
};

type GrantRow = {
  readonly at: number;
  readonly kind: Caller['kind'];
  readonly expires_at: Date | null;
  readonly session_expires_at: Date | null;
  readonly key_role: string | null;
  readonly bound_to: string | null;
  readonly organization_role: string | null;
  readonly workspace_id: string | null;
  readonly workspace_role: string | null;
};

export async function findRevokedGrants<G extends HeldGrant>(
  db: Database,
  grants: readonly G[],
  nowMs: number,
): Promise<ReadonlySet<G>> {
  const keys = grants.map(({ caller }) => caller.keyId);
  const workspaces = grants.map(({ workspaceId }) => workspaceId ?? null);
  const sessions = grants.map(({ caller }) => caller.sessionId ?? null);
  const { rows } = await sql<GrantRow>`
    select g.at::int - 1 as at, k.kind, k.expires_at, k.role as key_role, k.workspace_id as bound_to,
      s.expires_at as session_expires_at, om.role as organization_role, w.id as workspace_id, wm.role as workspace_role
    from unnest(${keys}::uuid[], ${workspaces}::uuid[], ${sessions}::uuid[]) with ordinality
      as g (key_id, workspace_id, session_id, at)
    join api_keys k on k.id = g.key_id
    left join sessions s on s.id = g.session_id and s.api_key_id = k.id
    left join organization_members om on om.organization_id = k.organization_id and om.user_id = k.user_id
    left join workspaces w on w.id = g.workspace_id and w.organization_id = k.organization_id
    left join workspace_members wm on wm.workspace_id = w.id and wm.user_id = k.user_id`.execute(db);
  const found = new Map(rows.map((row) => [row.at, row]));
  const revoked = grants.filter((grant, at) => {
    const row = found.get(at);
    return row === undefined || !isHeld(grant, row, nowMs);
  });
  return new Set(revoked);
}

function isHeld({ caller, workspaceId, permission }: HeldGrant, row: GrantRow, nowMs: number): boolean {
  if (row.expires_at !== null && row.expires_at.getTime() <= nowMs) return false;
  const sessionEndMs = row.session_expires_at?.getTime() ?? 0;
  if (caller.sessionId !== undefined && sessionEndMs <= nowMs) return false;
  const ofKey = row.bound_to === null ? row.key_role : null;
  const inOrganization = permissionsOf(
    'organization',
    row.kind === 'personal' ? row.organization_role : ofKey,
  );
  if (workspaceId === undefined) return permission === undefined || inOrganization.has(permission);
  if (row.workspace_id === null) return false;
  const keyRole = row.bound_to === workspaceId ? row.key_role : null;
  const own = permissionsOf('workspace', row.workspace_role ?? keyRole);
  const seesAll = inOrganization.has('workspaces:read');
  if (!seesAll && row.workspace_role === null && keyRole === null) return false;
  return permission === undefined || own.has(permission) || (seesAll && inOrganization.has(permission));
}
