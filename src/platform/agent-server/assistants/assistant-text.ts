// An assistant and its versions as clients see them: JSON text that the database makes of a row, so that its config and context
// pass through as they are stored.
import { sql } from '../../store/sql.ts';

const VERSION_FIELDS = [
  'assistant_id',
  'graph_id',
  'version',
  'config',
  'context',
  'metadata',
  'name',
  'description',
  'created_at',
] as const;
export const ASSISTANT_FIELDS = [...VERSION_FIELDS, 'updated_at'] as const;
export type AssistantField = (typeof ASSISTANT_FIELDS)[number];

/** The column `text`. */
export function assistantText(fields: readonly AssistantField[] = ASSISTANT_FIELDS) {
  const members = fields.map((field) => sql`${sql.lit(field)}, ${valueOf(field)}`);
  return sql<string>`json_build_object(${sql.join(members)})::text`.as('text');
}

export function versionText() {
  return assistantText(VERSION_FIELDS);
}

function valueOf(field: AssistantField) {
  const column = sql.ref(field);
  if (field !== 'created_at' && field !== 'updated_at') return column;
  return sql`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}
