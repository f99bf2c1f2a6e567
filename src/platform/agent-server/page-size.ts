// How many bytes the rows of a page have, before they are read: a list may ask for a thousand rows, each of megabytes.
import { DomainError } from '../../base/domain-error.ts';
import type { Reader } from '../store/database.ts';
import { sql } from '../store/sql.ts';

/** Of all rows of a page, as they are sent. */
export const MAX_PAGE_BYTES = 64 * 1024 * 1024;

export type PageRows = {
  readonly table: 'agent_threads' | 'agent_runs' | 'agent_assistants' | 'agent_assistant_versions';
  readonly where: ReturnType<typeof sql<boolean>>;
  /** JSON or text. */
  readonly columns: readonly string[];
};

/** As JSON text: columns are compressed, so that what they occupy says little. */
export async function countBytes(db: Reader, { table, where, columns }: PageRows): Promise<number> {
  if (columns.length === 0) return 0;
  const sizes = columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}::text), 0)`);
  const { bytes } = await db
    .selectFrom(table)
    .select(sql<number>`coalesce(sum(${sql.join(sizes, sql` + `)}), 0)::float8`.as('bytes'))
    .where(where)
    .executeTakeFirstOrThrow();
  return bytes;
}

/** Throws DomainError `unusable`. */
export async function requireSmallPage(db: Reader, rows: PageRows): Promise<void> {
  if ((await countBytes(db, rows)) <= MAX_PAGE_BYTES) return;
  throw new DomainError(
    'unusable',
    `The page has more than ${MAX_PAGE_BYTES} bytes: lower limit, or leave out ${rows.columns.join(', ')} by select where the list has it`,
  );
}
