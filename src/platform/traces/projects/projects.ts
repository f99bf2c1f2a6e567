// Tracing projects in the database. Their runs are in the trace store: those of a project that is gone are removed by a job.
import { randomUUID } from 'node:crypto';
import { DomainError } from '../../../base/domain-error.ts';
import { isObject } from '../../../base/json/json-document.ts';
import { pathToUnstorable } from '../../../base/json/storable-text.ts';
import type { z } from '../../../base/schema.ts';
import { isDuplicate, type Database, type Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { newProject, projectChange, projectQuery } from './project-schema.ts';
import '../store/trace-rows.ts';

const COLUMNS = [
  ...(['id', 'workspace_id', 'name', 'description', 'extra', 'start_time', 'end_time'] as const),
  ...(['default_dataset_id', 'reference_dataset_id'] as const),
] as const;

export const noProject = (): DomainError =>
  new DomainError('not_found', 'There is no such project in this workspace');

/** Newest first, unless the query says otherwise. */
export async function listProjects(db: Reader, workspaceId: string, query: z.output<typeof projectQuery>) {
  const { id, name, name_contains: part, reference_dataset: datasets, reference_free: isFree } = query;
  let list = selectProjects(db, workspaceId);
  if (id !== undefined && id.length > 0) list = list.where('p.id', 'in', id);
  if (name !== undefined) list = list.where('p.name', '=', name);
  if (part !== undefined) list = list.where(sql<boolean>`strpos(lower(p.name), lower(${part})) > 0`);
  if (datasets !== undefined && datasets.length > 0)
    list = list.where('p.reference_dataset_id', 'in', datasets);
  if (isFree === true) list = list.where('p.reference_dataset_id', 'is', null);
  if (isFree === false) list = list.where('p.reference_dataset_id', 'is not', null);
  if (query.metadata !== undefined) {
    const metadata = parseMetadata(query.metadata);
    if (metadata === undefined) return [];
    list = list.where(sql<boolean>`p.extra::jsonb -> 'metadata' @> ${metadata}::jsonb`);
  }
  const order = query.sort_by_desc ? 'desc' : 'asc';
  const column = {
    start_time: 'p.start_time',
    name: 'p.name',
    last_run_start_time: 'last_run_start_time_live',
  } as const;
  const rows = await list
    .orderBy(column[query.sort_by], (by) => (order === 'desc' ? by.desc().nullsLast() : by.asc().nullsLast()))
    .orderBy('p.id')
    .limit(query.limit)
    .offset(query.offset)
    .execute();
  return rows.map(toProject);
}

/** Throws `not_found`, also for a project of another workspace. */
export async function findProject(db: Reader, workspaceId: string, id: string) {
  return toProject(
    await selectProjects(db, workspaceId).where('p.id', '=', id).executeTakeFirstOrThrow(noProject),
  );
}

/** With the start of the latest run, which is noted when runs are merged. */
export function selectProjects(db: Reader, workspaceId: string) {
  return db
    .selectFrom('trace_projects as p')
    .leftJoin('trace_project_spans as s', (join) =>
      join.onRef('s.workspace_id', '=', 'p.workspace_id').onRef('s.session_id', '=', 'p.id'),
    )
    .select(COLUMNS.map((column) => `p.${column}` as const))
    .select('s.last_start_time as last_run_start_time_live')
    .where('p.workspace_id', '=', workspaceId);
}

type ProjectRow = Awaited<ReturnType<ReturnType<typeof selectProjects>['executeTakeFirstOrThrow']>>;

function toProject({ workspace_id, last_run_start_time_live: last, ...row }: ProjectRow) {
  const shown = {
    ...row,
    start_time: row.start_time.toISOString(),
    end_time: row.end_time?.toISOString() ?? null,
  };
  return {
    ...{ ...shown, tenant_id: workspace_id, trace_tier: 'longlived' as const },
    last_run_start_time_live: last?.toISOString() ?? null,
  };
}

/** Throws `conflict` where the name or the id is taken; with `upsert` the project of the name is changed. */
export async function createProject(
  db: Database,
  workspaceId: string,
  given: z.output<typeof newProject>,
  upsert: boolean,
): Promise<string> {
  const { name, extra, start_time, ...rest } = given;
  const fields = {
    description: rest.description ?? null,
    extra: extra ? JSON.stringify(extra) : null,
    end_time: rest.end_time ?? null,
    default_dataset_id: rest.default_dataset_id ?? null,
    reference_dataset_id: rest.reference_dataset_id ?? null,
  };
  const started = start_time ? { start_time } : {};
  const row = { workspace_id: workspaceId, id: rest.id ?? randomUUID(), name, ...fields, ...started };
  const sent = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
  try {
    const insert = db.insertInto('trace_projects').values(row);
    const written = upsert
      ? insert.onConflict((conflict) =>
          conflict.constraint('trace_projects_name').doUpdateSet({ ...sent, modified_at: sql<Date>`now()` }),
        )
      : insert;
    const { id } = await written.returning('id').executeTakeFirstOrThrow();
    await confirmNotRemoved(db, workspaceId, id);
    return id;
  } catch (error) {
    throw toTaken(error);
  }
}

/** The runs of a project are removed by its id: those of a new one would be too. */
async function confirmNotRemoved(db: Database, workspaceId: string, id: string): Promise<void> {
  const removals = db.selectFrom('trace_removals').select('session_id');
  const found = await removals
    .where('workspace_id', '=', workspaceId)
    .where('session_id', '=', id)
    .executeTakeFirst();
  if (found !== undefined)
    throw new DomainError(
      'conflict',
      'A project with this id was deleted, and its runs are being removed: try again later, or use another id',
    );
}

/** Throws `not_found`, or `conflict` where the name is taken. */
export async function changeProject(
  db: Database,
  { workspaceId, id }: { readonly workspaceId: string; readonly id: string },
  { name, description, extra, end_time, default_dataset_id }: z.output<typeof projectChange>,
): Promise<void> {
  try {
    await db
      .updateTable('trace_projects')
      .set({
        modified_at: sql<Date>`now()`,
        ...(name ? { name } : {}),
        ...(description === undefined ? {} : { description }),
        ...(extra === undefined ? {} : { extra: extra === null ? null : JSON.stringify(extra) }),
        ...(end_time === undefined ? {} : { end_time }),
        ...(default_dataset_id === undefined ? {} : { default_dataset_id }),
      })
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .returning('id')
      .executeTakeFirstOrThrow(noProject);
  } catch (error) {
    throw toTaken(error);
  }
}

/** Returns those that were there. Their runs are not found any more, and removed by a job. */
export async function deleteProjects(
  db: Database,
  workspaceId: string,
  ids: readonly string[],
): Promise<readonly string[]> {
  const gone = await db
    .deleteFrom('trace_projects')
    .where('workspace_id', '=', workspaceId)
    .where('id', 'in', ids)
    .returning('id')
    .execute();
  return gone.map(({ id }) => id);
}

function toTaken(error: unknown): unknown {
  if (isDuplicate(error, 'trace_projects_name'))
    return new DomainError('conflict', 'A project with this name already exists');
  return isDuplicate(error, 'trace_projects_pkey')
    ? new DomainError('conflict', 'A project with this id already exists')
    : error;
}

/** Undefined for a text that is no JSON object, or that the database cannot have stored. */
function parseMetadata(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && pathToUnstorable(value) === undefined ? text : undefined;
  } catch {
    return undefined;
  }
}
