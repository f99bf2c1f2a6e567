// The rows of assistants and their versions.
import type { Fixed, Generated } from '../../store/sql.ts';

/** A JSON object in a column that holds its text as it came: read as text, so that no number loses digits. */
type Version = {
  readonly graph_id: string;
  readonly name: string;
  readonly description: string | null;
  readonly config: string;
  readonly context: string;
  readonly metadata: string;
};

declare module '../../store/tables.ts' {
  interface Tables {
    readonly agent_assistants: {
      readonly assistant_id: Generated<string>;
      /** The active one; what follows is of that version. */
      version: Generated<number>;
      graph_id: string;
      name: string;
      description: string | null;
      config: Generated<string>;
      context: Generated<string>;
      metadata: Generated<string>;
      readonly created_at: Fixed<Date>;
      updated_at: Generated<Date>;
    };
    readonly agent_assistant_versions: Version & {
      readonly assistant_id: string;
      readonly version: number;
      readonly created_at: Fixed<Date>;
    };
  }
}
