// Field schemas that the documents of management share: names, roles, times, pages.
import { NAME } from '../../base/json/printable-text.ts';
import { z } from '../../base/schema.ts';
import { createPageQuery } from '../api/paging.ts';
import {
  type OrganizationRole,
  type WorkspaceRole,
  organizationRoles,
  workspaceRoles,
} from '../identity/permission.ts';

// The length is checked before the pattern, which would block the event loop on a megabyte of text.
export const displayName = z
  .string()
  .max(128, { abort: true })
  .trim()
  .min(1)
  .regex(NAME, 'Input must have no control characters');

export const email = z
  .string()
  .max(254, { abort: true })
  .check(z.email('Input must be an email address'))
  .toLowerCase();

export const organizationRole = z.enum(Object.keys(organizationRoles) as OrganizationRole[]);
export const workspaceRole = z.enum(Object.keys(workspaceRoles) as WorkspaceRole[]);

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

export const page = createPageQuery(100);
