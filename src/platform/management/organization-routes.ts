// `/api/v1/orgs/current`: the organization of the API key, and the roles in it.
import { z } from '../../base/schema.ts';
import { inOrganization, type OrganizationGrant } from '../api/access.ts';
import { type Handling, type Route, UNTRACKED_READ, defineRoute, resourceOutcome } from '../api/route.ts';
import { type EntitlementDefaults, auditLogRefusal } from '../identity/entitlement.ts';
import {
  organizationRoleIds,
  organizationRoles,
  workspaceRoleIds,
  workspaceRoles,
} from '../identity/permission.ts';
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { displayName, time } from './fields.ts';

const info = z
  .strictObject({
    id: z.uuid(),
    display_name: z.string(),
    config: z.strictObject({ can_use_audit_logs: z.boolean() }),
    is_personal: z.boolean(),
    tier: z.string().nullable().describe('The plan, where the public API has one of this name'),
    plan: z.string(),
    permissions: z.array(z.string()).describe('Of the caller'),
    reached_max_workspaces: z.literal(false),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'OrganizationInfo' });

/** Nothing is billed here. */
const organization = info
  .extend({
    connected_to_stripe: z.literal(false),
    connected_to_metronome: z.literal(false),
    has_cancelled: z.literal(false),
  })
  .meta({ id: 'Organization' });

const role = z
  .strictObject({
    id: z.uuid(),
    name: z.string(),
    display_name: z.string(),
    description: z.string(),
    organization_id: z.null().describe('Every organization has the same roles'),
    permissions: z.array(z.string()),
    access_scope: z.enum(['organization', 'workspace']),
  })
  .meta({ id: 'Role' });

const TIERS: readonly string[] = [
  'no_plan',
  'developer',
  'plus',
  'enterprise',
  'startup',
  'partner',
  'premier',
];
const COLUMNS = ['id', 'display_name', 'is_personal', 'plan', 'created_at', 'updated_at'] as const;

const shared = { path: '/api/v1/orgs/current', tag: 'Organization' } as const;
const named = { path: '/api/v1/orgs/current/info', tag: 'Organization' } as const;

export function createOrganizationRoutes(defaults: EntitlementDefaults): readonly Route[] {
  const readInfo = (call: OrganizationGrant & Handling) => read(call, defaults);
  return [
    defineRoute({
      ...shared,
      method: 'GET',
      summary: 'Read the organization',
      access: inOrganization('organization:read'),
      tracking: UNTRACKED_READ,
      responses: { 200: organization },
      async handle(call) {
        const nothingBilled = {
          connected_to_stripe: false,
          connected_to_metronome: false,
          has_cancelled: false,
        };
        return {
          body: {
            ...(await readInfo(call)),
            ...(nothingBilled as Record<keyof typeof nothingBilled, false>),
          },
        };
      },
    }),
    defineRoute({
      ...named,
      method: 'GET',
      summary: 'Read the organization, as far as its members need it',
      access: inOrganization('organization:read'),
      tracking: UNTRACKED_READ,
      responses: { 200: info },
      handle: async (call) => ({ body: await readInfo(call) }),
    }),
    defineRoute({
      ...named,
      method: 'PATCH',
      summary: 'Rename the organization',
      access: inOrganization('organization:manage'),
      tracking: { operation: 'update_organization_info' },
      locksOrganization: true,
      body: z.object({ display_name: displayName.optional() }),
      responses: { 200: info },
      async handle(call) {
        const { db, organizationId, body } = call;
        if (body.display_name !== undefined) await rename(db, organizationId, body.display_name);
        return resourceOutcome(await readInfo(call));
      },
    }),
    defineRoute({
      ...shared,
      method: 'GET',
      path: '/api/v1/orgs/current/roles',
      summary: 'List the roles that keys and members may have',
      access: inOrganization('organization:read'),
      tracking: UNTRACKED_READ,
      responses: { 200: z.array(role) },
      handle: async () => ({ body: ROLES }),
    }),
  ];
}

async function read(
  { db, caller, organizationId, permissions }: OrganizationGrant & Handling,
  defaults: EntitlementDefaults,
) {
  const found = db.selectFrom('organizations').select(COLUMNS).where('id', '=', organizationId);
  const row = await found.executeTakeFirstOrThrow();
  return {
    ...row,
    config: { can_use_audit_logs: auditLogRefusal(caller.organization, defaults) === undefined },
    tier: TIERS.includes(row.plan) ? row.plan : null,
    permissions: [...permissions],
    reached_max_workspaces: false as const,
  };
}

async function rename(db: Database, organizationId: string, display_name: string): Promise<void> {
  const change = { display_name, updated_at: sql<Date>`now()` };
  await db.updateTable('organizations').set(change).where('id', '=', organizationId).execute();
}

const ROLES = [
  ...rolesOf('organization', organizationRoles, organizationRoleIds),
  ...rolesOf('workspace', workspaceRoles, workspaceRoleIds),
];

function rolesOf<R extends string>(
  access_scope: 'organization' | 'workspace',
  roles: Readonly<Record<R, readonly string[]>>,
  ids: Readonly<Record<R, string>>,
) {
  return (Object.keys(roles) as R[]).map((name) => ({
    id: ids[name],
    name,
    display_name: `${access_scope === 'organization' ? 'Organization' : 'Workspace'} ${name.split('_')[1]?.toLowerCase()}`,
    description: roles[name].join(', '),
    organization_id: null,
    permissions: roles[name],
    access_scope,
  }));
}
