// `/api/v1/orgs/current`: the organization of the API key.
import { z } from '../../base/schema.ts';
import { inOrganization } from '../api/access.ts';
import { type Route, UNTRACKED_READ, defineRoute, resourceOutcome } from '../api/route.ts';
import { sql } from '../store/sql.ts';
import { displayName, time } from './fields.ts';

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

const COLUMNS = organization.keyof().options;

const shared = { path: '/api/v1/orgs/current', tag: 'Organization' } as const;

export const organizationRoutes: readonly Route[] = [
  defineRoute({
    ...shared,
    method: 'GET',
    summary: 'Read the organization',
    access: inOrganization('organization:read'),
    tracking: UNTRACKED_READ,
    responses: { 200: organization },
    async handle({ db, organizationId }) {
      const found = db.selectFrom('organizations').select(COLUMNS).where('id', '=', organizationId);
      return { body: await found.executeTakeFirstOrThrow() };
    },
  }),
  defineRoute({
    ...shared,
    method: 'PATCH',
    summary: 'Rename the organization',
    access: inOrganization('organization:manage'),
    tracking: { operation: 'update_organization_info' },
    body: z.strictObject({ display_name: displayName }),
    responses: { 200: organization },
    async handle({ db, organizationId, body: { display_name } }) {
      const renamed = db
        .updateTable('organizations')
        .set({ display_name, updated_at: sql<Date>`now()` })
        .where('id', '=', organizationId)
        .returning(COLUMNS);
      return resourceOutcome(await renamed.executeTakeFirstOrThrow());
    },
  }),
];
