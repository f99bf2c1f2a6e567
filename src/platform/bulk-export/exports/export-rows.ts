// The rows of exports and of their runs. Windows are ISO 8601 in UTC with microseconds, as times of traces are: their order is that of
// their texts.
import type { ExportField } from '../files/export-columns.ts';
import type { RunProgress } from '../files/run-progress.ts';
import type { ColumnType, Fixed, Generated } from '../../store/sql.ts';
import type { ExportStatus, RunStatus } from './export-states.ts';

declare module '../../store/tables.ts' {
  interface Tables {
    readonly exports: {
      readonly id: Fixed<string>;
      readonly workspace_id: Fixed<string>;
      readonly destination_id: Fixed<string>;
      readonly session_id: Fixed<string>;
      /** The schedule that has made it. */
      readonly source_id: Fixed<string | null>;
      status: ExportStatus;
      readonly start_time: Fixed<string>;
      /** Null: it is a schedule. */
      readonly end_time: Fixed<string | null>;
      readonly filter: Fixed<string | null>;
      /** Null: all. */
      readonly export_fields: Fixed<readonly ExportField[] | null>;
      readonly format_version: Fixed<FormatVersion>;
      readonly compression: Fixed<Compression>;
      readonly interval_hours: Fixed<number | null>;
      /** Of a schedule: where the window of its next export begins, and when that is made. */
      next_start: string | null;
      next_due_at: Date | null;
      readonly created_at: Fixed<Date>;
      updated_at: Date;
      /** Of its first run. */
      started_at: Date | null;
      finished_at: Date | null;
    };
    readonly export_runs: {
      readonly id: Fixed<string>;
      readonly workspace_id: Fixed<string>;
      readonly export_id: Fixed<string>;
      readonly destination_id: Fixed<string>;
      status: RunStatus;
      readonly window_start: Fixed<string>;
      readonly window_end: Fixed<string>;
      retry_number: Generated<number>;
      /** Attempts that ended with their worker or gave others their place, which cost no retry. */
      interruptions: Generated<number>;
      errors: NullableJson<Readonly<Record<string, string>>>;
      progress: NullableJson<RunProgress>;
      /** That its first attempt took; null before that, and 0 for the credentials of this installation. */
      credentials_version: number | null;
      /** Of its next attempt, at the earliest. */
      due_at: Date;
      /** The process that had it last. */
      worker: string | null;
      lease_id: string | null;
      lease_until: Date | null;
      attempt_at: Date | null;
      /** Of an attempt at work: with its files that are not complete. */
      rows_read: ColumnType<string | null, number | null | undefined, number | null>;
      readonly created_at: Fixed<Date>;
      updated_at: Date;
      finished_at: Date | null;
    };
    /** Workspaces that are gone, whose exports are to be removed. */
    readonly export_removals: {
      readonly workspace_id: Fixed<string>;
      readonly deleted_at: Generated<Date>;
    };
  }
}

/** Written as text. */
type NullableJson<T> = ColumnType<T | null, string | null | undefined, string | null>;

export type FormatVersion = 'v1' | 'v2_beta';
/** By the names of the public API. */
export type Compression = 'none' | 'gzip' | 'snappy' | 'zstandard';
