// The row types of the tables of traces, whose columns the migration explains.
import type { ColumnType, Fixed, Generated, Json } from '../../store/sql.ts';
import type { Pairs, Usage } from '../runs/run-part.ts';

/** Written as ISO 8601 with microseconds, which a Date has not: read as text where they count. */
type Time = ColumnType<Date, string, string>;
type NullableTime = ColumnType<Date | null, string | null, string | null>;
/** Computed by the database. */
type Computed<T> = ColumnType<T, never, never>;
/** Tokens and costs are read as text: they may be larger or more precise than a number. */
type Numeric = Computed<string | null>;

declare module '../../store/tables.ts' {
  interface Tables {
    readonly trace_projects: {
      readonly workspace_id: Fixed<string>;
      readonly id: Fixed<string>;
      name: string;
      description: string | null;
      extra: Json<Readonly<Record<string, unknown>>> | null;
      start_time: ColumnType<Date, string | undefined, string>;
      end_time: NullableTime;
      default_dataset_id: string | null;
      reference_dataset_id: string | null;
      readonly created_at: Fixed<Date>;
      modified_at: Generated<Date>;
    };
    readonly trace_runs: {
      readonly workspace_id: Fixed<string>;
      session_id: string;
      start_time: Time;
      readonly id: Fixed<string>;
      trace_id: string;
      parent_run_id: string | null;
      parent_run_ids: readonly string[];
      dotted_order: string;
      name: string;
      run_type: string;
      end_time: NullableTime;
      error: string | null;
      tags: readonly string[];
      reference_example_id: string | null;
      metadata: Json<Readonly<Record<string, unknown>>>;
      thread_id: string | null;
      first_token_time: NullableTime;
      usage_in_extra: Json<Usage> | null;
      usage_in_outputs: Json<Usage> | null;
      inputs_pairs: Json<Pairs>;
      outputs_pairs: Json<Pairs>;
      inputs_text: string;
      outputs_text: string;
      inputs_json: Buffer | null;
      outputs_json: Buffer | null;
      extra_json: Buffer | null;
      events_json: Buffer | null;
      serialized_json: Buffer | null;
      error_json: Buffer | null;
      given: number;
      patched: number;
      readonly received_at: Fixed<Date>;
      readonly is_root: Computed<boolean>;
      readonly status: Computed<'error' | 'success' | 'pending'>;
      readonly latency: Numeric;
      readonly prompt_tokens: Numeric;
      readonly completion_tokens: Numeric;
      readonly total_tokens: Numeric;
      readonly prompt_cost: Numeric;
      readonly completion_cost: Numeric;
      readonly total_cost: Numeric;
    };
    readonly trace_run_places: {
      readonly workspace_id: Fixed<string>;
      readonly id: Fixed<string>;
      session_id: string;
      start_time: Time;
      session_rank: number;
      start_rank: number;
      last_session_id: string | null;
      last_start_time: NullableTime;
      last_start_rank: number | null;
    };
    readonly trace_project_spans: {
      readonly workspace_id: Fixed<string>;
      readonly session_id: Fixed<string>;
      first_start_time: Time;
      last_start_time: Time;
    };
    readonly trace_feedback: {
      readonly workspace_id: Fixed<string>;
      readonly id: Fixed<string>;
      run_id: string | null;
      trace_id: string | null;
      session_id: string | null;
      key: string;
      score: number | null;
      value: ColumnType<unknown, string | null, string | null>;
      comment: string | null;
      correction: ColumnType<unknown, string | null, string | null>;
      feedback_source: ColumnType<Readonly<Record<string, unknown>> | null, string | null, string | null>;
      readonly created_at: ColumnType<Date, string | undefined, never>;
      modified_at: ColumnType<Date, string | undefined, string>;
    };
    readonly trace_attachments: {
      readonly workspace_id: Fixed<string>;
      readonly run_id: Fixed<string>;
      readonly name: Fixed<string>;
      mime_type: string;
      size: ColumnType<string, number | string, number | string>;
      object: string;
      readonly created_at: Fixed<Date>;
    };
    readonly trace_signing_keys: {
      readonly key: Fixed<Buffer>;
      readonly created_at: Fixed<Date>;
    };
    readonly trace_removals: {
      readonly workspace_id: Fixed<string>;
      readonly session_id: Fixed<string>;
      readonly deleted_at: Fixed<Date>;
    };
    /** Of one connection and one transaction: a temporary table (`run-merging.ts`). */
    readonly trace_run_staging_1: Tables['trace_runs'] & {
      readonly session_rank: number;
      readonly start_rank: number;
    };
  }
}
