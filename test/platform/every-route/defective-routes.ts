// Routes with defects that the fuzz tests must find. They exist only in the tests.
import { DomainError } from '../../../src/base/domain-error.ts';
import { z } from '../../../src/base/schema.ts';
import { inWorkspace } from '../../../src/platform/api/access.ts';
import { sandboxErrors } from '../../../src/platform/api/contract/error-formats.ts';
import { defineRoute, type Route } from '../../../src/platform/api/route.ts';
import type { Database } from '../../../src/platform/store/database.ts';

const shared = {
  method: 'POST',
  tag: 'Defective',
  access: inWorkspace('deployments:create'),
  tracking: { operation: 'create_listener' },
  body: z.strictObject({ count: z.int().min(0).max(9), name: z.string().max(40) }),
  responses: { 200: z.strictObject({ count: z.int() }) },
  failures: [],
} as const;

/** Stricter than its document says. */
const stricter = z.strictObject({
  count: z
    .int()
    .min(0)
    .max(9)
    .refine((count) => count !== 9),
});

export type DefectiveRoute = { readonly route: Route; readonly complaint: string };

export const defectiveRoutes: readonly DefectiveRoute[] = [
  {
    complaint: 'an internal error',
    route: defineRoute({
      ...shared,
      path: '/defective/fails-at-its-limit',
      summary: 'a route that fails at the limit of a field',
      async handle({ body }) {
        if (body.count === 9) throw new Error('a bug');
        return { body: { count: body.count } };
      },
    }),
  },
  {
    complaint: 'an undocumented body',
    route: defineRoute({
      ...shared,
      path: '/defective/undocumented-field',
      summary: 'a route that returns an undocumented field',
      handle: async ({ body }) => ({ body: { count: body.count, more: 1 } }),
    }),
  },
  {
    complaint: 'an undocumented status',
    route: defineRoute({
      ...shared,
      path: '/defective/undocumented-status',
      summary: 'a route that returns an undocumented status',
      async handle({ body }) {
        if (body.count === 0) throw new DomainError('conflict', 'It already exists');
        return { body: { count: body.count } };
      },
    }),
  },
  {
    complaint: 'it changed something',
    route: defineRoute({
      ...shared,
      path: '/defective/writes-before-rejecting',
      summary: 'a route that writes and then rejects the request',
      // Before its transaction, with which it would be rolled back.
      async prepare({ db, organizationId, body }) {
        if (body.count > 0) return;
        const row = {
          organization_id: organizationId,
          display_name: `${Math.random()}`,
          tenant_handle: null,
        };
        await (db as Database).insertInto('workspaces').values(row).execute();
        throw new DomainError('unusable', 'At least one is required');
      },
      handle: async ({ body }) => ({ body: { count: body.count } }),
    }),
  },
  {
    complaint: 'it repeats the input',
    route: defineRoute({
      ...shared,
      path: '/defective/repeats-input',
      summary: 'a route that repeats the input',
      async handle({ body }) {
        throw new DomainError('unusable', `${body.name} not found`);
      },
    }),
  },
  {
    complaint: 'a valid request was rejected',
    route: defineRoute({
      ...shared,
      path: '/defective/stricter-than-documented',
      summary: 'a route that is stricter than its document',
      body: stricter,
      handle: async ({ body }) => ({ body: { count: body.count } }),
    }),
  },
  {
    complaint: 'a valid request was rejected',
    route: defineRoute({
      ...shared,
      path: '/defective/stricter-with-value-errors',
      summary: 'a route that is stricter than its document, whose issues have one type',
      errors: sandboxErrors,
      body: stricter,
      handle: async ({ body }) => ({ body: { count: body.count } }),
    }),
  },
  {
    complaint: 'an event that repeats the input',
    route: defineRoute({
      ...shared,
      path: '/defective/names-input-in-its-event',
      summary: 'a route whose event has a text of the request as the name of a resource',
      handle: async ({ body }) => ({ body: { count: body.count }, resourceNames: [body.name] }),
    }),
  },
];
