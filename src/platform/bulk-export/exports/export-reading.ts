// Exports and their runs as rows, for routes and pages. Every statement names the workspace.
import { DomainError } from '../../../base/domain-error.ts';
import type { Reader } from '../../store/database.ts';
import { type Selectable, sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import type { DestinationConfig } from '../destinations/destination-schema.ts';

export const EXPORT_COLUMNS = [
  'id',
  'workspace_id',
  'destination_id',
  'session_id',
  'source_id',
  'status',
  'start_time',
  'end_time',
  'filter',
  'export_fields',
  'format_version',
  'compression',
  'interval_hours',
  'next_due_at',
  'created_at',
  'updated_at',
  'started_at',
  'finished_at',
] as const;
export type ExportRow = Pick<Selectable<Tables['exports']>, (typeof EXPORT_COLUMNS)[number]>;

const RUN_COLUMNS = [
  'r.id',
  'r.export_id',
  'r.status',
  'r.window_start',
  'r.window_end',
  'r.retry_number',
  'r.interruptions',
  'r.errors',
  'r.progress',
  'r.due_at',
  'r.created_at',
  'r.updated_at',
  'r.finished_at',
] as const;

export type Page = { readonly limit: number; readonly offset: number };

export const noExport = (): DomainError => new DomainError('not_found', 'Bulk export not found');
export const noRun = (): DomainError => new DomainError('not_found', 'Bulk export run not found');

/** Of all exports when absent. */
type Listed = {
  /** The schedule that has made them. */
  readonly sourceId?: string | undefined;
  readonly projectId?: string | undefined;
};

/** Newest first. */
export async function listExports(
  db: Reader,
  workspaceId: string,
  { limit, offset, sourceId, projectId }: Page & Listed,
): Promise<readonly ExportRow[]> {
  let query = db.selectFrom('exports').select(EXPORT_COLUMNS).where('workspace_id', '=', workspaceId);
  if (sourceId !== undefined) query = query.where('source_id', '=', sourceId);
  if (projectId !== undefined) query = query.where('session_id', '=', projectId);
  return query.orderBy('created_at', 'desc').orderBy('id').limit(limit).offset(offset).execute();
}

/** Throws `not_found`, also for an export of another workspace. */
export async function findExport(db: Reader, workspaceId: string, id: string): Promise<ExportRow> {
  return db
    .selectFrom('exports')
    .select(EXPORT_COLUMNS)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow(noExport);
}

export type RunRow = Awaited<ReturnType<typeof selectRuns>>[number];

/** Of an export, by their days. Throws `not_found`. */
export async function listRuns(
  db: Reader,
  workspaceId: string,
  exportId: string,
): Promise<readonly RunRow[]> {
  await findExport(db, workspaceId, exportId);
  return selectRuns(db, workspaceId, { exportId });
}

/** Of all exports that a schedule has made, newest first. Throws `not_found`. */
export async function listRunsOfSource(
  db: Reader,
  workspaceId: string,
  source: Page & { readonly sourceId: string },
): Promise<readonly RunRow[]> {
  await findExport(db, workspaceId, source.sourceId);
  return selectRuns(db, workspaceId, source);
}

/** Throws `not_found`. */
export async function findRun(
  db: Reader,
  workspaceId: string,
  { exportId, runId }: { readonly exportId: string; readonly runId: string },
): Promise<RunRow> {
  await findExport(db, workspaceId, exportId);
  const [run] = await selectRuns(db, workspaceId, { exportId, runId });
  if (run === undefined) throw noRun();
  return run;
}

type Selected = Partial<Page> & {
  readonly exportId?: string;
  readonly runId?: string;
  readonly sourceId?: string;
};

/** With what names their objects. */
async function selectRuns(db: Reader, workspaceId: string, by: Selected) {
  const { exportId, runId, sourceId, limit, offset } = by;
  let query = db
    .selectFrom('export_runs as r')
    .innerJoin('exports as e', 'e.id', 'r.export_id')
    .innerJoin('export_destinations as d', 'd.id', 'r.destination_id')
    .select(RUN_COLUMNS)
    .select([
      'r.workspace_id',
      'e.session_id',
      'd.config',
      sql<number | null>`r.rows_read::float8`.as('rows_read'),
    ])
    .where('r.workspace_id', '=', workspaceId);
  if (exportId !== undefined) query = query.where('r.export_id', '=', exportId);
  if (runId !== undefined) query = query.where('r.id', '=', runId);
  if (sourceId !== undefined)
    query = query.where('e.source_id', '=', sourceId).orderBy('r.window_start', 'desc');
  if (limit !== undefined) query = query.limit(limit);
  if (offset !== undefined) query = query.offset(offset);
  const rows = await query.orderBy('r.window_start').orderBy('r.id').execute();
  return rows.map(({ config, ...row }) => ({ ...row, config: JSON.parse(config) as DestinationConfig }));
}

/** For pages: what has come of the runs of each export. */
export async function countRuns(db: Reader, workspaceId: string, exportIds: readonly string[]) {
  if (exportIds.length === 0) return new Map<string, never>();
  const rows = await db
    .selectFrom('export_runs')
    .select([
      'export_id',
      sql<number>`count(*)::int`.as('runs'),
      sql<number>`(count(*) filter (where status = 'COMPLETED'))::int`.as('completed'),
      sql<number>`(count(*) filter (where status = 'RUNNING'))::int`.as('running'),
      sql<number>`coalesce(sum((progress ->> 'rows')::bigint), 0)::float8`.as('rows'),
      sql<number>`coalesce(sum(retry_number), 0)::int`.as('retries'),
    ])
    .where('workspace_id', '=', workspaceId)
    .where('export_id', 'in', exportIds)
    .groupBy('export_id')
    .execute();
  return new Map(rows.map((row) => [row.export_id, row]));
}
