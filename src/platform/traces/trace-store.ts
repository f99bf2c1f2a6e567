// The port to where runs are stored. Nothing above it knows tables: another store keeps the same contract, whose tests are in
// `test/platform/traces/store/trace-store-checks.ts`. Projects, feedback and attachments are rows of PostgreSQL in any case.
import type { Database, Reader, Transaction } from '../store/database.ts';
import type { PlacedPart } from './runs/run-part.ts';

export type TraceStore = {
  /**
   * Merges parts into the runs of the workspace, in the transaction of the request. At most one part for each run. Merging the same
   * part again changes nothing; parts of a run may come in any order, and from several processes at once.
   */
  mergeRuns(trx: Transaction, workspaceId: string, parts: readonly PlacedPart[]): Promise<void>;
  /** Undefined where the workspace has no such run. */
  readRun(
    db: Reader,
    run: { readonly workspaceId: string; readonly id: string },
  ): Promise<StoredRun | undefined>;
  /** Of the traces of each project that has some, within the time that they are kept. */
  readProjectStats(
    db: Reader,
    projects: { readonly workspaceId: string; readonly ids: readonly string[] },
  ): Promise<ReadonlyMap<string, ProjectStats>>;
  /** Removes what it can of the runs of a project, within limits of time; true once there are none. */
  removeRuns(db: Database, project: { readonly workspaceId: string; readonly id: string }): Promise<boolean>;
};

/** Times are ISO 8601 in UTC with microseconds. Tokens and costs are decimal text. JSON is as it was sent. */
export type StoredRun = {
  readonly id: string;
  readonly session_id: string;
  readonly trace_id: string;
  readonly parent_run_id: string | null;
  readonly parent_run_ids: readonly string[];
  readonly dotted_order: string;
  readonly name: string;
  readonly run_type: string;
  readonly status: 'error' | 'success' | 'pending';
  readonly start_time: string;
  readonly end_time: string | null;
  readonly first_token_time: string | null;
  readonly tags: readonly string[];
  readonly reference_example_id: string | null;
  readonly thread_id: string | null;
  readonly is_root: boolean;
  readonly prompt_tokens: string | null;
  readonly completion_tokens: string | null;
  readonly total_tokens: string | null;
  readonly prompt_cost: string | null;
  readonly completion_cost: string | null;
  readonly total_cost: string | null;
  /** As they are stored: `unpackPayload` gives their JSON. */
  readonly inputs_json: Buffer | null;
  readonly outputs_json: Buffer | null;
  readonly extra_json: Buffer | null;
  readonly events_json: Buffer | null;
  readonly serialized_json: Buffer | null;
  readonly error_json: Buffer | null;
};

/** Latencies are seconds, costs decimal text. */
export type ProjectStats = {
  readonly run_count: number;
  readonly latency_p50: number | null;
  readonly latency_p99: number | null;
  readonly first_token_p50: number | null;
  readonly first_token_p99: number | null;
  readonly total_tokens: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_cost: string | null;
  readonly prompt_cost: string | null;
  readonly completion_cost: string | null;
  readonly last_run_start_time: string | null;
  readonly error_rate: number;
  readonly streaming_rate: number;
};
