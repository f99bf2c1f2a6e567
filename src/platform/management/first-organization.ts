// A new organization, with a workspace and a key that can create everything else in it; the first one of an installation.
import { DomainError } from '../../base/domain-error.ts';
import { mintKey, parseKey } from '../identity/api-key.ts';
import type { Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { insertKey } from './keys.ts';
import { createWorkspace } from './workspaces.ts';

export type NewOrganization = {
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly keyId: string;
  /** The text of a key that was created here; the caller shows it once. */
  readonly createdKey: string | undefined;
};

export type OrganizationOptions = {
  readonly name: string;
  /** `enterprise` when absent. */
  readonly plan?: string | undefined;
  /** False when absent. */
  readonly isPersonal?: boolean | undefined;
  /** Its own `can_use_audit_logs`, true when absent; null: the default for all organizations applies. */
  readonly canUseAuditLogs?: boolean | null | undefined;
  /** A service key that was created elsewhere; undefined: one is created. */
  readonly key?: string | undefined;
};

/** An arbitrary number that no other advisory lock of the platform uses. */
const LOCK = 7_261_001;

/** Throws `conflict` when an organization exists, also one that another process is creating at the same time. */
export async function createFirstOrganization(
  trx: Transaction,
  options: OrganizationOptions,
): Promise<NewOrganization> {
  if (options.key !== undefined) parseServiceKey(options.key);
  await sql`select pg_advisory_xact_lock(${LOCK})`.execute(trx);
  const existing = await trx.selectFrom('organizations').select('id').limit(1).executeTakeFirst();
  if (existing !== undefined) throw new DomainError('conflict', 'An organization already exists');
  return createOrganization(trx, options);
}

export async function createOrganization(
  trx: Transaction,
  { name, key, plan = 'enterprise', isPersonal = false, canUseAuditLogs = true }: OrganizationOptions,
): Promise<NewOrganization> {
  const minted = key === undefined ? mintKey('service') : undefined;
  const parsed = minted ?? parseServiceKey(key ?? '');
  const config = JSON.stringify(canUseAuditLogs === null ? {} : { can_use_audit_logs: canUseAuditLogs });
  const { id: organizationId } = await trx
    .insertInto('organizations')
    .values({ display_name: name, plan, is_personal: isPersonal, config })
    .returning('id')
    .executeTakeFirstOrThrow();
  const workspace = await createWorkspace(trx, organizationId, 'Default');
  const scope = { organizationId, kind: 'service', workspaceId: null } as const;
  const wanted = {
    ...{ user_id: null, role: 'ORGANIZATION_ADMIN', description: 'First key', expires_at: null },
    home_workspace_id: workspace.id,
  };
  const keyId = await insertKey(trx, scope, wanted, parsed);
  return { organizationId, workspaceId: workspace.id, keyId, createdKey: minted?.text };
}

/** Throws `unusable` for every other text. */
function parseServiceKey(text: string) {
  const parsed = parseKey(text);
  if (parsed?.kind === 'service') return parsed;
  throw new DomainError('unusable', 'The first API key must be a service key of the platform: sp_sk_…');
}
