// The first organization of an installation, with all that is needed to ask for more: a workspace and a key. It must not
// know who asks for it, nor the audit log: whoever calls it tells of what was made.
import { DomainError } from '../../base/domain-error.ts';
import { sql } from '../store/sql.ts';
import type { Transaction } from '../store/database.ts';
import { type KeyKind, mintKey, parseKey } from './api-key.ts';
import type { OrganizationRole } from './permission.ts';

export type FirstOrganization = {
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly keyId: string;
  /** The key in clear when it was made here: to be shown once. */
  readonly reported: string | undefined;
};

export type FirstOrganizationOptions = {
  readonly name: string;
  /** A service key that was made before, and is known to whoever will use it. */
  readonly key?: string | undefined;
};

const KIND: KeyKind = 'service';
const ROLE: OrganizationRole = 'ORGANIZATION_ADMIN';

/** Any number; that of nothing else that takes an advisory lock. */
const LOCK = 7_261_001;

/** Refuses when there is an organization, also when another process makes it at the same time. */
export async function createFirstOrganization(
  trx: Transaction,
  { name, key }: FirstOrganizationOptions,
): Promise<FirstOrganization> {
  const given = key === undefined ? mintKey(KIND) : parseKey(key);
  if (given === undefined || ('kind' in given && given.kind !== KIND))
    throw new DomainError(
      'unusable',
      'The first key should be a service key as the platform makes them: sp_sk_…',
    );
  await sql`select pg_advisory_xact_lock(${LOCK})`.execute(trx);
  const there = await trx.selectFrom('organizations').select('id').limit(1).executeTakeFirst();
  if (there !== undefined) throw new DomainError('conflict', 'There is an organization already');
  const organization = await trx
    .insertInto('organizations')
    .values({
      display_name: name,
      plan: 'enterprise',
      config: JSON.stringify({ can_use_audit_logs: true }),
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  const workspace = await trx
    .insertInto('workspaces')
    .values({ organization_id: organization.id, display_name: 'Default', tenant_handle: null })
    .returning('id')
    .executeTakeFirstOrThrow();
  const made = await trx
    .insertInto('api_keys')
    .values({
      kind: KIND,
      organization_id: organization.id,
      workspace_id: null,
      user_id: null,
      role: ROLE,
      short_key: given.shortKey,
      hash: given.hash,
      description: 'First key',
      expires_at: null,
      last_used_at: null,
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  return {
    organizationId: organization.id,
    workspaceId: workspace.id,
    keyId: made.id,
    reported: 'text' in given ? given.text : undefined,
  };
}
