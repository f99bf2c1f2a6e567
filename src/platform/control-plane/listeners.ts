// Listeners: compute that a workspace has registered for its deployments.
import { DomainError } from '../../base/domain-error.ts';
import { hasInvisible, VISIBLE } from '../../base/json/printable-text.ts';
import { z } from '../../base/schema.ts';
import type { Page } from '../api/paging.ts';
import { brokenReferenceOf, type Database, isDuplicate } from '../store/database.ts';
import { type Entity, type Generated, type Json, sql } from '../store/sql.ts';
import { defineStatement } from '../store/statement.ts';

declare module '../store/tables.ts' {
  interface Tables {
    readonly listeners: Entity & {
      readonly workspace_id: string;
      readonly compute_type: 'k8s';
      readonly compute_id: string;
      compute_config: Json<{ readonly k8s_namespaces?: readonly string[] | null | undefined }>;
      version: string | null;
      updated_at: Generated<Date>;
    };
  }
}

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const UNPRINTABLE = 'Input must have no control characters and no bidirectional marks';

const computeConfig = z.object({
  k8s_namespaces: z
    .array(z.string().regex(LABEL, 'Input must be the name of a Kubernetes namespace'))
    .max(1000)
    .nullable()
    .optional(),
});
const version = z.string().max(128).nullable();

export const listener = z
  .strictObject({
    id: z.uuid(),
    compute_type: z.literal('k8s'),
    compute_id: z.string(),
    compute_config: computeConfig,
    version,
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Listener' });
const COLUMNS = listener.keyof().options;

/** Fields that are not known here are ignored: clients may be newer. */
export const newListener = z.object({
  compute_type: z.literal('k8s'),
  compute_id: z
    .string()
    .min(1, { abort: true })
    .max(253)
    .regex(VISIBLE, { error: UNPRINTABLE, abort: true })
    .refine((id) => !hasInvisible(id), UNPRINTABLE)
    .refine((id) => id.trim() !== '', 'Input must not be blank'),
  compute_config: computeConfig,
  version: version.optional(),
});
/** Fields that are left out are not changed. */
export const listenerChange = z.object({
  compute_config: computeConfig.optional(),
  version: version.optional(),
});

/** Oldest first, so that a new listener does not shift the pages before it. */
export async function listListeners(db: Database, workspaceId: string, { limit, offset }: Page) {
  return db
    .selectFrom('listeners')
    .select(COLUMNS)
    .where('workspace_id', '=', workspaceId)
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute();
}

/** Throws `conflict` when the workspace already has a listener with this `compute_id`. */
export async function createListener(
  db: Database,
  workspaceId: string,
  { compute_type, compute_id, compute_config, version = null }: z.infer<typeof newListener>,
) {
  const config = JSON.stringify(compute_config);
  try {
    const [created] = await insertListener(db, { workspaceId, compute_type, compute_id, config, version });
    if (created === undefined) throw new Error('no listener was inserted');
    return created;
  } catch (error) {
    if (!isDuplicate(error, 'listeners_compute')) throw error;
    throw new DomainError(
      'conflict',
      `Listener for workspace ID '${workspaceId}' and compute ID '${compute_id}' already exists.`,
    );
  }
}

type NewRow = Pick<z.infer<typeof newListener>, 'compute_type' | 'compute_id'> & {
  readonly workspaceId: string;
  /** JSON text. */
  readonly config: string;
  readonly version: string | null;
};

const insertListener = defineStatement(
  'insert-listener',
  (db, { workspaceId, compute_type, compute_id, config, version }: NewRow) =>
    db
      .insertInto('listeners')
      .values({ workspace_id: workspaceId, compute_type, compute_id, compute_config: config, version })
      .returning(COLUMNS)
      .compile(),
);

/** Throws `not_found`, also for a listener of another workspace. */
export async function readListener(db: Database, workspaceId: string, id: string) {
  const [found] = await findListener(db, { workspaceId, id });
  if (found === undefined) throw notFound(id);
  return found;
}

const findListener = defineStatement(
  'find-listener',
  (db, { workspaceId, id }: { readonly workspaceId: string; readonly id: string }) =>
    db
      .selectFrom('listeners')
      .select(COLUMNS)
      .where('id', '=', id)
      .where('workspace_id', '=', workspaceId)
      .compile(),
);

export async function changeListener(
  db: Database,
  workspaceId: string,
  id: string,
  { compute_config, version }: z.infer<typeof listenerChange>,
) {
  return db
    .updateTable('listeners')
    .set({
      updated_at: sql<Date>`now()`,
      ...(compute_config === undefined ? {} : { compute_config: JSON.stringify(compute_config) }),
      ...(version === undefined ? {} : { version }),
    })
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .returning(COLUMNS)
    .executeTakeFirstOrThrow(() => notFound(id));
}

/** Throws `conflict` while deployments name it. */
export async function deleteListener(db: Database, workspaceId: string, id: string): Promise<void> {
  try {
    await db
      .deleteFrom('listeners')
      .where('id', '=', id)
      .where('workspace_id', '=', workspaceId)
      .returning('id')
      .executeTakeFirstOrThrow(() => notFound(id));
  } catch (error) {
    throw brokenReferenceOf(error) === undefined ? error : new DomainError('conflict', USED);
  }
}

const USED = 'Deployments use this listener: delete them first';

function notFound(id: string): DomainError {
  return new DomainError('not_found', `Listener ID ${id} not found.`);
}
