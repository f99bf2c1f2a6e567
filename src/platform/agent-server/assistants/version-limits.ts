// How many versions an assistant may have, and how much they may hold: each is a copy of the whole assistant, however little a change of it
// has sent.
import { DomainError } from '../../../base/domain-error.ts';
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';

export type VersionLimits = {
  readonly versions: number;
  /** As the database keeps them: text that compresses well counts less. */
  readonly bytes: number;
};

export const VERSION_LIMITS: VersionLimits = { versions: 10_000, bytes: 256 * 1024 * 1024 };

const CURE = 'create another assistant for further changes, or delete this one with all its versions';

/** With the version that was just written, in its transaction, which is rolled back where this throws DomainError `conflict`. */
export async function requireFewVersions(db: Database, id: string, limits: VersionLimits): Promise<void> {
  const found = await db
    .selectFrom('agent_assistant_versions')
    .select([
      sql<number>`count(*)::integer`.as('versions'),
      // Without reading the values themselves.
      sql<string>`coalesce(sum(pg_column_size(config) + pg_column_size(context) + pg_column_size(metadata)
        + pg_column_size(name) + coalesce(pg_column_size(description), 0)), 0)`.as('bytes'),
    ])
    .where('assistant_id', '=', id)
    .executeTakeFirstOrThrow();
  if (found.versions > limits.versions)
    throw new DomainError('conflict', `An assistant has at most ${limits.versions} versions: ${CURE}`);
  if (Number(found.bytes) > limits.bytes)
    throw new DomainError(
      'conflict',
      `The versions of an assistant have at most ${limits.bytes} bytes together, and each is a whole copy: ${CURE}`,
    );
}
