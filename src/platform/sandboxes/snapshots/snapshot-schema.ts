// What callers send about snapshots and what they see.
import { z } from '../../../base/schema.ts';
import { isBoxId } from '../box-names.ts';

const optional = <T extends z.ZodType>(schema: T) => schema.nullable().optional();

const MAX_BYTES = 2 ** 44;
const NAME =
  'Input must have letters, digits, dots, hyphens and underscores, and begin with a letter or digit';

const snapshotName = z
  .string()
  .min(1, { abort: true })
  .max(128, { abort: true })
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, NAME)
  .refine((name) => !isBoxId(name), 'Input must not have the form of an id');

// Its own limits before those of `int`: of one that is too large only the lower one helps.
const capacity = z
  .number()
  .min(1, { abort: true })
  .max(MAX_BYTES, { abort: true })
  .int()
  .describe('Of a sandbox of this snapshot that asks for none');

export const newSnapshot = z.object({
  name: snapshotName,
  directory: optional(z.string().min(1).max(4_095)).describe(
    'An absolute path, below a directory of sandboxes.snapshot_directories',
  ),
  docker_image: optional(z.string().max(4_096)).describe('Not supported: 400 says what is'),
  registry_id: optional(z.string().max(200)).describe('Not supported'),
  fs_capacity_bytes: optional(capacity),
});

export const archiveQuery = z.strictObject({ name: snapshotName, fs_capacity_bytes: capacity.optional() });

export const shownSnapshot = z
  .strictObject({
    id: z.guid(),
    name: z.string(),
    status: z.enum(['building', 'ready', 'failed']),
    status_message: z.string().nullable(),
    source: z.enum(['base', 'directory', 'archive']),
    docker_image: z.null(),
    registry_id: z.null(),
    fs_capacity_bytes: z.int().nullable(),
    size_bytes: z.int().nullable(),
    entries: z.int().nullable(),
    created_by: z.string().nullable(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'SandboxSnapshot' });
export type ShownSnapshot = z.output<typeof shownSnapshot>;

export const snapshotQuery = z.object({
  limit: z.int().min(1).max(1_000).default(100),
  offset: z.int().min(0).max(100_000).default(0),
  name_contains: z.string().max(128).optional(),
  status: z.enum(['building', 'ready', 'failed']).optional(),
});
export type SnapshotQuery = z.output<typeof snapshotQuery>;

export const snapshotList = z.strictObject({ snapshots: z.array(shownSnapshot), offset: z.int() });
