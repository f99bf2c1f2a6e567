// The assistant that a run is made of: its active version at that moment, which later changes of the assistant leave as it is.
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import { DomainError } from '../../../base/domain-error.ts';
import { type Filter, whereVisible } from '../access/filters.ts';
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { defineRead } from '../../store/statement.ts';

export type AssistantToRun = {
  readonly assistantId: string;
  readonly version: number;
  readonly graphId: string;
  readonly config: JsonObject;
  readonly context: JsonObject;
  readonly metadata: JsonObject;
  /** The time of the transaction that reads it. */
  readonly now: Date;
};

/** Throws `not_found`, also for one that the filter hides. */
export async function readAssistantToRun(
  db: Reader,
  assistantId: string,
  filter: Filter | undefined,
): Promise<AssistantToRun> {
  const [row] =
    filter === undefined
      ? await findAssistant(db, { assistantId })
      : await selectAssistant(db, assistantId).where(whereVisible(filter)).execute();
  if (row === undefined) throw noAssistant();
  return {
    assistantId,
    version: row.version,
    graphId: row.graph_id,
    config: JSON.parse(row.config) as JsonObject,
    context: JSON.parse(row.context) as JsonObject,
    metadata: JSON.parse(row.metadata) as JsonObject,
    now: row.now,
  };
}

function selectAssistant(db: Reader, assistantId: string) {
  return db
    .selectFrom('agent_assistants')
    .select(['version', 'graph_id'])
    .select([
      sql<string>`config::text`.as('config'),
      sql<string>`context::text`.as('context'),
      sql<string>`metadata::text`.as('metadata'),
      sql<Date>`now()`.as('now'),
    ])
    .where('assistant_id', '=', assistantId);
}

const findAssistant = defineRead(
  'find-assistant-to-run',
  (db, { assistantId }: { readonly assistantId: string }) => selectAssistant(db, assistantId).compile(),
);

export function noAssistant(): DomainError {
  return new DomainError(
    'not_found',
    'Assistant not found: assistant_id must be the id of an assistant, or of a graph of this deployment',
  );
}
