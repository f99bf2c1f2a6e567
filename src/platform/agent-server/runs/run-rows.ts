// The rows of runs.
import type { Fixed, Generated } from '../../store/sql.ts';

export const RUN_STATUSES = ['pending', 'running', 'error', 'success', 'timeout', 'interrupted'] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];
export const MULTITASK_STRATEGIES = ['reject', 'interrupt', 'rollback', 'enqueue'] as const;
export type MultitaskStrategy = (typeof MULTITASK_STRATEGIES)[number];
/** What a run was asked for: to end and keep its progress, or to end and be removed with its checkpoints. */
export type Cancellation = 'interrupt' | 'rollback';

declare module '../../store/tables.ts' {
  interface Tables {
    readonly agent_runs: {
      readonly run_id: string;
      readonly thread_id: string;
      readonly assistant_id: string;
      readonly assistant_version: number;
      readonly graph_id: string;
      status: Generated<RunStatus>;
      metadata: Generated<string>;
      readonly kwargs: string;
      readonly multitask_strategy: MultitaskStrategy;
      /** The order of the runs of a thread. */
      readonly position: Fixed<string>;
      run_after: Generated<Date>;
      attempt: Generated<number>;
      /** Attempts that ended because their worker or their process was lost. */
      losses: Generated<number>;
      /** Whose runs share the places. */
      readonly party: Generated<string>;
      lease_owner: string | null;
      lease_until: Date | null;
      cancellation: Cancellation | null;
      readonly is_resumable: Generated<boolean>;
      /** The process whose client reads its events from the first on. */
      readonly streamed_by: string | null;
      /** The last values, or `{error, message}`. */
      output: string | null;
      readonly created_at: Fixed<Date>;
      updated_at: Generated<Date>;
      ended_at: Date | null;
    };
    readonly agent_run_results: {
      readonly run_id: string;
      readonly thread_id: string;
      readonly status: RunStatus;
      readonly output: string | null;
      /** Of the thread that has ended. */
      readonly metadata: string;
      readonly ended_at: Fixed<Date>;
    };
    readonly agent_run_users: {
      readonly run_id: string;
      readonly sealed: Buffer;
    };
  }
}
