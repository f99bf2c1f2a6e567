// The first organization of an installation, with a workspace and a key that can create everything else.
import { DomainError } from '../../base/domain-error.ts';
import { mintKey, parseKey } from '../identity/api-key.ts';
import type { Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { insertKey } from './keys.ts';
import { createWorkspace } from './workspaces.ts';

export type FirstOrganization = {
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly keyId: string;
  /** The text of a key that was created here; the caller shows it once. */
  readonly createdKey: string | undefined;
};

export type FirstOrganizationOptions = {
  readonly name: string;
  /** A service key that was created elsewhere; undefined: one is created. */
  readonly key?: string | undefined;
};

/** An arbitrary number that no other advisory lock of the platform uses. */
const LOCK = 7_261_001;

/** Throws `conflict` when an organization exists, also one that another process is creating at the same time. */
export async function createFirstOrganization(
  trx: Transaction,
  { name, key }: FirstOrganizationOptions,
): Promise<FirstOrganization> {
  const minted = key === undefined ? mintKey('service') : undefined;
  const parsed = key === undefined ? minted : parseServiceKey(key);
  if (parsed === undefined)
    throw new DomainError('unusable', 'The first API key must be a service key of the platform: sp_sk_…');
  await sql`select pg_advisory_xact_lock(${LOCK})`.execute(trx);
  const existing = await trx.selectFrom('organizations').select('id').limit(1).executeTakeFirst();
  if (existing !== undefined) throw new DomainError('conflict', 'An organization already exists');
  const config = JSON.stringify({ can_use_audit_logs: true });
  const { id: organizationId } = await trx
    .insertInto('organizations')
    .values({ display_name: name, plan: 'enterprise', config })
    .returning('id')
    .executeTakeFirstOrThrow();
  const workspace = await createWorkspace(trx, organizationId, 'Default');
  const scope = { organizationId, kind: 'service', workspaceId: null } as const;
  const wanted = { user_id: null, role: 'ORGANIZATION_ADMIN', description: 'First key', expires_at: null };
  const { id: keyId } = await insertKey(trx, scope, wanted, parsed);
  return { organizationId, workspaceId: workspace.id, keyId, createdKey: minted?.text };
}

function parseServiceKey(text: string): ReturnType<typeof parseKey> {
  const parsed = parseKey(text);
  return parsed?.kind === 'service' ? parsed : undefined;
}
