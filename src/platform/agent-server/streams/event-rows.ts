// The rows of stored events of runs.
import type { Fixed } from '../../store/sql.ts';

declare module '../../store/tables.ts' {
  interface Tables {
    readonly agent_run_events: {
      readonly run_id: string;
      readonly id: string;
      readonly event: string;
      /** JSON in one line. */
      readonly data: string;
      readonly created_at: Fixed<Date>;
    };
  }
}
