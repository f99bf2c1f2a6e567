// `/api/v1/orgs/current`: the organization of the key.
import { z } from '../../base/schema.ts';
import { type Route, defineRoute } from '../api/route.ts';
import { UNTRACKED_READ, displayName, time } from './fields.ts';
import { type OrganizationView, readOrganization, renameOrganization } from './organizations.ts';

const organization = z
  .strictObject({
    id: z.uuid(),
    display_name: z.string(),
    is_personal: z.boolean(),
    plan: z.string(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Organization' });

const shared = { path: '/api/v1/orgs/current', tag: 'Organization' } as const;

export const organizationRoutes: readonly Route[] = [
  defineRoute({
    ...shared,
    method: 'GET',
    summary: 'Read the organization',
    access: { to: 'organization', permission: 'organization:read' },
    tracking: UNTRACKED_READ,
    success: { status: 200, body: organization },
    failures: [],
    handle: async ({ db, organizationId }) => ({ body: toBody(await readOrganization(db, organizationId)) }),
  }),
  defineRoute({
    ...shared,
    method: 'PATCH',
    summary: 'Rename the organization',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'update_organization_info' },
    body: z.strictObject({ display_name: displayName }),
    success: { status: 200, body: organization },
    failures: [],
    async handle({ db, organizationId, body }) {
      const changed = await renameOrganization(db, organizationId, body.display_name);
      return { body: toBody(changed), resources: [organizationId] };
    },
  }),
];

function toBody({ created_at, updated_at, ...rest }: OrganizationView): unknown {
  return { ...rest, created_at: created_at.toISOString(), updated_at: updated_at.toISOString() };
}
