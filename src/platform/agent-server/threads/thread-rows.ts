// The rows of threads.
import type { Fixed, Generated } from '../../store/sql.ts';

export const THREAD_STATUSES = ['idle', 'busy', 'interrupted', 'error'] as const;
export type ThreadStatus = (typeof THREAD_STATUSES)[number];

declare module '../../store/tables.ts' {
  interface Tables {
    readonly agent_threads: {
      readonly thread_id: Generated<string>;
      status: Generated<ThreadStatus>;
      metadata: Generated<string>;
      config: Generated<string>;
      /** As the graph gave them. */
      values: string | null;
      /** As they are searched: U+0000 is replaced. */
      searched_values: string | null;
      interrupts: Generated<string>;
      error: string | null;
      /** Of a run without a thread. */
      readonly is_temporary: Generated<boolean>;
      readonly created_at: Fixed<Date>;
      updated_at: Generated<Date>;
      state_updated_at: Generated<Date>;
    };
  }
}
