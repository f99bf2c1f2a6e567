// Routes with the defects that asking every route for all that there is should find. They are in no platform.
import { DomainError } from '../../../src/base/domain-error.ts';
import { z } from '../../../src/base/schema.ts';
import { defineRoute, type Route } from '../../../src/platform/api/route.ts';

const shared = {
  method: 'POST',
  tag: 'Faulty',
  access: { to: 'workspace', permission: 'deployments:create' },
  tracking: { operation: 'create_listener' },
  body: z.strictObject({ count: z.int().min(0).max(9), name: z.string().max(40) }),
  success: { status: 200, body: z.strictObject({ count: z.int() }) },
  failures: [],
} as const;

export type InvalidRoute = { readonly route: Route; readonly complaint: string };

export const invalidRoutes: readonly InvalidRoute[] = [
  {
    complaint: 'a fault of the platform',
    route: defineRoute({
      ...shared,
      path: '/faulty/one-that-breaks-at-its-limit',
      summary: 'one that breaks at its limit',
      async handle({ body }) {
        if (body.count === 9) throw new Error('a bug');
        return { body: { count: body.count } };
      },
    }),
  },
  {
    complaint: 'a body that the document does not describe',
    route: defineRoute({
      ...shared,
      path: '/faulty/one-that-tells-more',
      summary: 'one that tells more than is documented',
      handle: async ({ body }) => ({ body: { count: body.count, more: 1 } }),
    }),
  },
  {
    complaint: 'a status that the document does not name',
    route: defineRoute({
      ...shared,
      path: '/faulty/one-of-another-status',
      summary: 'one that answers what is not documented',
      async handle({ body }) {
        if (body.count === 0) throw new DomainError('conflict', 'It is there already');
        return { body: { count: body.count } };
      },
    }),
  },
  {
    complaint: 'it changed something',
    route: defineRoute({
      ...shared,
      path: '/faulty/one-that-writes-and-refuses',
      summary: 'one that writes and then refuses',
      tracking: { untracked: 'a test' },
      async handle({ db, organizationId, body }) {
        if (body.count > 0) return { body: { count: body.count } };
        const row = {
          organization_id: organizationId,
          display_name: `${Math.random()}`,
          tenant_handle: null,
        };
        await db.insertInto('workspaces').values(row).execute();
        throw new DomainError('unusable', 'None is too few');
      },
    }),
  },
  {
    complaint: 'it repeats what was sent',
    route: defineRoute({
      ...shared,
      path: '/faulty/one-that-repeats',
      summary: 'one that repeats what was sent',
      async handle({ body }) {
        throw new DomainError('unusable', `There is no ${body.name}`);
      },
    }),
  },
  {
    complaint: 'it should not be refused',
    route: defineRoute({
      ...shared,
      path: '/faulty/one-that-is-stricter',
      summary: 'one that is stricter than its document',
      body: z.strictObject({
        count: z
          .int()
          .min(0)
          .max(9)
          .refine((count) => count !== 9),
      }),
      handle: async ({ body }) => ({ body: { count: body.count } }),
    }),
  },
];
