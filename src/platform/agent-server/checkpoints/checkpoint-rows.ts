// The rows of checkpoints, of the values of their channels, and of the writes of tasks.
import type { Fixed, Generated } from '../../store/sql.ts';

declare module '../../store/tables.ts' {
  interface Tables {
    readonly agent_checkpoints: {
      readonly thread_id: string;
      readonly checkpoint_ns: string;
      readonly checkpoint_id: string;
      readonly parent_checkpoint_id: string | null;
      readonly run_id: string | null;
      readonly type: string;
      readonly checkpoint: Buffer;
      readonly metadata_type: string;
      readonly metadata: Buffer;
      /** As it is searched: U+0000 is replaced. */
      readonly searched_metadata: string;
      readonly versions: string;
    };
    readonly agent_checkpoint_values: {
      readonly thread_id: string;
      readonly checkpoint_ns: string;
      readonly channel: string;
      readonly version: string;
      readonly type: string;
      readonly value: Buffer;
    };
    readonly agent_checkpoint_writes: {
      readonly thread_id: string;
      readonly checkpoint_ns: string;
      readonly checkpoint_id: string;
      readonly task_id: string;
      /** Below zero: of the graph itself, such as an interrupt. The last one counts; of the others, the first. */
      readonly idx: number;
      /** Zeros: an update of the state. */
      readonly run_id: Generated<string>;
      readonly position: Fixed<string>;
      readonly channel: string;
      readonly type: string;
      readonly value: Buffer;
    };
  }
}
