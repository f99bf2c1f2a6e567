// The parts of which the documents of management are made: names, roles, times, pages.
import { z } from '../../base/schema.ts';
import { organizationRoles, workspaceRoles } from '../identity/permission.ts';
import type { OrganizationRole, WorkspaceRole } from '../identity/permission.ts';

// No control characters, and none that turn the direction of what follows: a name stands in lists between others.
const PLAIN = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+$/u;

// A length is judged before a pattern, which would hold up everybody over a megabyte.
export const displayName: z.ZodString = z
  .string()
  .max(128, { abort: true })
  .trim()
  .min(1)
  .regex(PLAIN, 'Input should have no control characters');

export const email: z.ZodString = z
  .string()
  .max(254, { abort: true })
  .check(z.email('Input should be an email address'))
  .toLowerCase();

export const organizationRole: z.ZodEnum<{ [R in OrganizationRole]: R }> = enumOf(organizationRoles);
export const workspaceRole: z.ZodEnum<{ [R in WorkspaceRole]: R }> = enumOf(workspaceRoles);

export const time: z.ZodISODateTime = z.iso.datetime();

const MAX_YEARS = 5;

/** When a key ends: ahead, and in a few years at most. */
export const expiry: z.ZodISODateTime = z.iso
  .datetime({ offset: true, abort: true, error: 'Input should be a time like 2030-01-01T00:00:00Z' })
  .refine((text) => Date.parse(text) > Date.now(), 'Input should be in the future')
  .refine(
    (text) => Date.parse(text) < Date.now() + MAX_YEARS * 366 * 86_400_000,
    `Input should be at most ${MAX_YEARS} years ahead`,
  );

export const page: z.ZodObject<{ limit: z.ZodDefault<z.ZodInt>; offset: z.ZodDefault<z.ZodInt> }> =
  z.strictObject({
    limit: z.int().min(1).max(100).default(100),
    offset: z.int().min(0).max(1_000_000_000).default(0),
  });

export type Page = z.output<typeof page>;

export const UNTRACKED_READ = { untracked: 'a read that is not among the tracked operations' } as const;

function enumOf<R extends string>(roles: Readonly<Record<R, unknown>>): z.ZodEnum<{ [K in R]: K }> {
  return z.enum(Object.fromEntries(Object.keys(roles).map((role) => [role, role])) as { [K in R]: K });
}
