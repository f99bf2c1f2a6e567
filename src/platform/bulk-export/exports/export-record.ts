// Exports and runs as the public API shows them. Pure.
import type { RunCursor } from '../../traces/contract.ts';
import type { ExportRow, RunRow } from './export-reading.ts';
import { formatStatus, type StatusCase } from './export-schema.ts';
import { pathOfRun } from './run-path.ts';

export function toExportRecord(row: ExportRow, as: StatusCase) {
  return {
    id: row.id,
    tenant_id: row.workspace_id,
    bulk_export_destination_id: row.destination_id,
    session_id: row.session_id,
    status: formatStatus(row.status, as),
    ...{ start_time: row.start_time, end_time: row.end_time, filter: row.filter },
    format: 'Parquet' as const,
    ...{ format_version: row.format_version, compression: row.compression },
    interval_hours: row.interval_hours,
    export_fields: row.export_fields === null ? null : [...row.export_fields],
    source_bulk_export_id: row.source_id,
    ...{ created_at: row.created_at.toISOString(), updated_at: row.updated_at.toISOString() },
    finished_at: row.finished_at?.toISOString() ?? null,
  };
}

export function toRunRecord(row: RunRow, as: StatusCase) {
  return {
    id: row.id,
    bulk_export_id: row.export_id,
    status: formatStatus(row.status, as),
    retry_number: row.retry_number,
    errors: row.errors,
    ...{ start_time: row.window_start, end_time: row.window_end },
    ...{ created_at: row.created_at.toISOString(), updated_at: row.updated_at.toISOString() },
    finished_at: row.finished_at?.toISOString() ?? null,
    metadata: {
      prefix: pathOfRun(row).prefix,
      ...{ start_time: row.window_start, end_time: row.window_end },
      execution_backend: null,
      result: toResult(row),
    },
  };
}

function toResult(row: RunRow) {
  const { progress } = row;
  if (progress === null) return null;
  const { cursor, pendingUpload: pending } = progress;
  return {
    rows_written: progress.rows,
    exported_files: progress.files.map(({ key }) => key),
    export_path: pathOfRun(row).path,
    latest_cursor: cursor === undefined ? null : formatCursor(cursor),
    pending_upload:
      pending === undefined
        ? null
        : {
            target_cursor: pending.target === undefined ? '' : formatCursor(pending.target.cursor),
            file_path: pending.key,
            rows_count: pending.target?.rows ?? 0,
          },
  };
}

/** JSON, whose members the database has in an order of its own. */
function formatCursor({ start_time, id }: RunCursor): string {
  return JSON.stringify({ start_time, id });
}
