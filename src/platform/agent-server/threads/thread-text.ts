// A thread as clients see it: JSON text of its row, whose own JSON passes through unread.
import { sql } from '../../store/sql.ts';

export const THREAD_FIELDS = [
  'thread_id',
  'created_at',
  'updated_at',
  'state_updated_at',
  'metadata',
  'status',
  'config',
  'values',
  'interrupts',
  'error',
] as const;
export type ThreadField = (typeof THREAD_FIELDS)[number];

/** The members of a thread as JSON text; null: it has none. */
export type ThreadRow = { readonly [Field in ThreadField]: string | null };

/** JSON is read as text. */
export const threadColumns = (fields: readonly ThreadField[] = THREAD_FIELDS) =>
  fields.map((field) => {
    if (TIMES.has(field))
      return sql<string | null>`to_json(to_char(${sql.ref(field)} at time zone 'UTC',
      'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))::text`.as(field);
    if (field === 'thread_id' || field === 'status')
      return sql<string | null>`to_json(${sql.ref(field)}::text)::text`.as(field);
    // A thread that never ran has neither.
    if (field === 'interrupts')
      return sql<
        string | null
      >`case when values is null and error is null then null else interrupts::text end`.as(field);
    return sql<string | null>`${sql.ref(field)}::text`.as(field);
  });

const TIMES: ReadonlySet<ThreadField> = new Set(['created_at', 'updated_at', 'state_updated_at']);

/** `extracted` is JSON text, where something was to be extracted. */
export function toThreadText(
  row: Partial<ThreadRow>,
  fields: readonly ThreadField[] = THREAD_FIELDS,
  extracted?: string,
): string {
  const members = fields.flatMap((field) => {
    const text = row[field];
    return text === null || text === undefined ? [] : [`"${field}":${text}`];
  });
  if (extracted !== undefined) members.push(`"extracted":${extracted}`);
  return `{${members.join(',')}}`;
}
