// Organizations, as the operator of an installation creates them and sets what they may use. Recorded in their audit logs.
import { InputError } from '../base/input-error.ts';
import { type AuditEntry, appendEvent } from './audit/journal.ts';
import type { PlatformConfig } from './config.ts';
import {
  type NewOrganization,
  type OrganizationOptions,
  createOrganization,
} from './management/first-organization.ts';
import { displayName } from './management/fields.ts';
import { openOperatorStore } from './operator-database.ts';
import type { Transaction } from './store/database.ts';
import { sql } from './store/sql.ts';

type Installation = Pick<PlatformConfig, 'database' | 'dataDirectory'>;

export async function addOrganization(
  config: Installation,
  options: Omit<OrganizationOptions, 'key'>,
): Promise<NewOrganization> {
  const name = parseOrganizationName(options.name);
  await using database = await openOperatorStore(config, 1);
  return await database.store.write(async (trx) => {
    const created = await createOrganization(trx, { ...options, name });
    await recordCreation(trx, created);
    return created;
  });
}

export async function recordCreation(
  trx: Transaction,
  { organizationId, workspaceId, keyId }: NewOrganization,
): Promise<void> {
  const events: readonly Pick<AuditEntry, 'operation' | 'workspaceId' | 'resources'>[] = [
    { operation: 'create_organization', resources: [organizationId] },
    { operation: 'create_workspace', workspaceId, resources: [workspaceId] },
    { operation: 'create_service_key', resources: [keyId] },
  ];
  for (const event of events) await appendEvent(trx, { ...event, organizationId, isSuccess: true });
}

/** Undefined fields are not changed. */
export type OrganizationChange = Omit<OrganizationOptions, 'key' | 'name'> & {
  readonly name?: string | undefined;
};

export type OrganizationSettings = {
  readonly name: string;
  readonly plan: string;
  readonly isPersonal: boolean;
  /** Its own; null: the default for all organizations applies. */
  readonly canUseAuditLogs: boolean | null;
};

export async function setOrganization(
  config: Installation,
  organizationId: string,
  { name, plan, isPersonal, canUseAuditLogs }: OrganizationChange,
): Promise<OrganizationSettings> {
  const named = name === undefined ? {} : { display_name: parseOrganizationName(name) };
  await using database = await openOperatorStore(config, 1);
  return await database.store.write(async (trx) => {
    const { display_name, ...changed } = await trx
      .updateTable('organizations')
      .set({
        updated_at: sql<Date>`now()`,
        ...named,
        ...(plan === undefined ? {} : { plan }),
        ...(isPersonal === undefined ? {} : { is_personal: isPersonal }),
        ...(canUseAuditLogs === undefined ? {} : { config: withFlag(canUseAuditLogs) }),
      })
      .where('id', '=', organizationId)
      .returning(['display_name', 'plan', 'is_personal', 'config'])
      .executeTakeFirstOrThrow(() => new InputError('There is no organization with this id'));
    await appendEvent(trx, {
      organizationId,
      operation: 'update_organization_info',
      isSuccess: true,
      resources: [organizationId],
    });
    const flag = changed.config['can_use_audit_logs'];
    return {
      name: display_name,
      plan: changed.plan,
      isPersonal: changed.is_personal,
      canUseAuditLogs: typeof flag === 'boolean' ? flag : null,
    };
  });
}

/** Throws an InputError for a name that the API would reject too. */
export function parseOrganizationName(text: string): string {
  const parsed = displayName.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new InputError(
    'The name must have 1 to 128 characters, and no control characters or direction marks',
  );
}

/** The other flags stay. */
function withFlag(canUseAuditLogs: boolean | null) {
  if (canUseAuditLogs === null) return sql<string>`config - 'can_use_audit_logs'`;
  return sql<string>`config || ${JSON.stringify({ can_use_audit_logs: canUseAuditLogs })}::jsonb`;
}
