// Field schemas that the documents of management share: names, roles, times, pages.
import { NAME, NAME_PATTERN } from '../../base/json/printable-text.ts';
import { z } from '../../base/schema.ts';
import type { Page } from '../api/paging.ts';
import {
  type OrganizationRole,
  type WorkspaceRole,
  organizationRoleIds,
  organizationRoles,
  workspaceRoleIds,
  workspaceRoles,
} from '../identity/permission.ts';

// The length is checked before the pattern, which would block the event loop on a megabyte of text.
export const displayName = z
  .string()
  .max(128, { abort: true })
  .trim()
  .min(1)
  .regex(NAME, 'Input must have no control characters')
  .meta({ pattern: NAME_PATTERN });

/** With the limits of RFC 5321: what is longer reaches no mailbox. */
const EMAIL =
  /^(?=[^@]{1,64}@)(?:[A-Za-z0-9_'+-]+\.)*[A-Za-z0-9_'+-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}$/;

export const email = z
  .string()
  .max(254, { abort: true })
  .check(z.email({ pattern: EMAIL, error: 'Input must be an email address' }))
  .toLowerCase();

export const organizationRole = z.enum(Object.keys(organizationRoles) as OrganizationRole[]);
export const workspaceRole = z.enum(Object.keys(workspaceRoles) as WorkspaceRole[]);

/** The same, as public clients name them. */
export const organizationRoleId = z.enum(organizationRoleIds);
export const workspaceRoleId = z.enum(workspaceRoleIds);

export function organizationRoleOf(id: string): OrganizationRole | undefined {
  return (Object.keys(organizationRoleIds) as OrganizationRole[]).find(
    (role) => organizationRoleIds[role] === id,
  );
}

export function workspaceRoleOf(id: string): WorkspaceRole | undefined {
  return (Object.keys(workspaceRoleIds) as WorkspaceRole[]).find((role) => workspaceRoleIds[role] === id);
}

export const time = z.iso.datetime();

const MAX_YEARS = 5;

/** When a key expires: in the future, at most five years ahead. */
export const expiry = z.iso
  .datetime({ offset: true, abort: true, error: 'Input must be a time like 2030-01-01T00:00:00Z' })
  .refine((text) => Date.parse(text) > Date.now(), 'Input must be in the future')
  .refine(
    (text) => Date.parse(text) < Date.now() + MAX_YEARS * 366 * 86_400_000,
    `Input must be at most ${MAX_YEARS} years ahead`,
  );

/** The response of a deletion: clients of public paths parse every body as JSON. */
export const nothing = z.strictObject({});

/** Public lists have no pages: without a limit, a client must get everything. */
const MOST = 10_000;

export const page = z.object({
  limit: z.int().min(1).max(100).optional(),
  offset: z.int().min(0).max(MOST).default(0),
});

export function toPage({ limit = MOST, offset }: z.output<typeof page>): Page {
  return { limit, offset };
}
