// Assistants in the tables: each change is a version of its own, and the row of the assistant is that of its active version.
// Whoever writes locks that row first, so that two changes at once make two versions.
import { DomainError } from '../../../base/domain-error.ts';
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { type Filter, whereVisible } from '../access/filters.ts';
import { MAX_METADATA_BYTES, requireSmallMetadata } from '../metadata.ts';
import { noAssistant } from './assistant-route.ts';
import { assistantText } from './assistant-text.ts';
import { requireFewVersions, VERSION_LIMITS, type VersionLimits } from './version-limits.ts';

/** What a version consists of; JSON as text. */
export type AssistantVersion = {
  readonly graph_id: string;
  readonly name: string;
  readonly description: string | null;
  readonly config: string;
  readonly context: string;
  readonly metadata: string;
};

const COLUMNS = ['graph_id', 'name', 'description', 'config', 'context', 'metadata'] as const;

export type NewAssistant = {
  readonly id: string;
  readonly version: AssistantVersion;
  readonly ifExists: 'raise' | 'do_nothing';
};

/** As JSON text. Throws DomainError `conflict` for one that exists, also where the caller may not see it. */
export async function createAssistant(
  db: Database,
  { id, version, ifExists }: NewAssistant,
  filter: Filter | undefined,
): Promise<string> {
  const made = await db
    .insertInto('agent_assistants')
    .values({ assistant_id: id, ...version })
    .onConflict((conflict) => conflict.column('assistant_id').doNothing())
    .returning(assistantText())
    .executeTakeFirst();
  if (made !== undefined) {
    const first = { assistant_id: id, version: 1, ...version };
    await db.insertInto('agent_assistant_versions').values(first).execute();
    return made.text;
  }
  const found = db.selectFrom('agent_assistants').select(assistantText()).where('assistant_id', '=', id);
  const row = ifExists === 'raise' ? undefined : await found.where(whereVisible(filter)).executeTakeFirst();
  if (row === undefined) throw new DomainError('conflict', 'An assistant with this id exists');
  return row.text;
}

export type AssistantChange = {
  readonly id: string;
  readonly changed: Partial<AssistantVersion>;
  readonly limits?: VersionLimits;
};

/**
 * In a transaction of the caller. What is left out stays as it is in the active version; metadata is merged. Throws DomainError `conflict`
 * where the assistant has as many versions as it may.
 */
export async function patchAssistant(
  db: Database,
  { id, changed: { metadata, ...replaced }, limits = VERSION_LIMITS }: AssistantChange,
  filter: Filter | undefined,
): Promise<string> {
  await lockAssistant(db, id, filter);
  const merged = metadata === undefined ? {} : { metadata: sql<string>`metadata || ${metadata}::jsonb` };
  const { text, large } = await db
    .updateTable('agent_assistants')
    .set({ ...replaced, ...merged, ...latestOf(id), updated_at: sql<Date>`now()` })
    .where('assistant_id', '=', id)
    .returning([assistantText(), largeMetadata().as('large')])
    .executeTakeFirstOrThrow();
  // What was merged is rolled back.
  if (large !== null) requireSmallMetadata(large);
  await db
    .insertInto('agent_assistant_versions')
    .columns(['assistant_id', 'version', ...COLUMNS])
    .expression((query) =>
      query
        .selectFrom('agent_assistants')
        .select(['assistant_id', 'version', ...COLUMNS])
        .where('assistant_id', '=', id),
    )
    .execute();
  await requireFewVersions(db, id, limits);
  return text;
}

function largeMetadata() {
  return sql<
    string | null
  >`case when octet_length(metadata::text) > ${sql.lit(MAX_METADATA_BYTES)} then metadata::text end`;
}

/** An earlier one may be active: the number follows the largest. */
function latestOf(id: string) {
  return {
    version: sql<number>`(select max(version) + 1 from agent_assistant_versions where assistant_id = ${id})`,
  };
}

/** Restores the whole version. Its metadata must be visible too, or the assistant would become somebody else's. */
export async function activateVersion(
  db: Database,
  {
    id,
    version,
    graphs,
  }: { readonly id: string; readonly version: number; readonly graphs: readonly string[] },
  filter: Filter | undefined,
): Promise<string> {
  await lockAssistant(db, id, filter);
  const found = await db
    .selectFrom('agent_assistant_versions')
    .select('graph_id')
    .where('assistant_id', '=', id)
    .where('version', '=', version)
    .where(whereVisible(filter))
    .executeTakeFirst();
  if (found === undefined) throw new DomainError('not_found', 'Assistant version not found');
  if (!graphs.includes(found.graph_id))
    throw new DomainError('not_found', 'The graph of this version is not served any more');
  const columns = sql.join(['version', ...COLUMNS].map((column) => sql.ref(column)));
  await sql`
    update agent_assistants set updated_at = now(), (${columns}) = (
      select ${columns} from agent_assistant_versions where assistant_id = ${id} and version = ${version}
    ) where assistant_id = ${id}
  `.execute(db);
  const restored = db.selectFrom('agent_assistants').select(assistantText()).where('assistant_id', '=', id);
  return (await restored.executeTakeFirstOrThrow()).text;
}

async function lockAssistant(db: Database, id: string, filter: Filter | undefined): Promise<void> {
  const found = db.selectFrom('agent_assistants').select('assistant_id').where('assistant_id', '=', id);
  const row = await found.where(whereVisible(filter)).forUpdate().executeTakeFirst();
  if (row === undefined) throw noAssistant();
}

export type Removal = {
  readonly id: string;
  /** With the threads that its runs were on, as far as this filter shows them; undefined: they stay. */
  readonly threads: { readonly filter: Filter | undefined } | undefined;
};

/** With all versions and all ended runs. Throws DomainError `conflict` while one of its runs has not ended. */
export async function deleteAssistant(
  db: Database,
  { id, threads }: Removal,
  filter: Filter | undefined,
): Promise<void> {
  // No run of it can be created from here on.
  await lockAssistant(db, id, filter);
  const ids = threads === undefined ? [] : await lockThreads(db, id, threads.filter);
  const running = await db
    .selectFrom('agent_runs')
    .select('run_id')
    .where('status', 'in', ['pending', 'running'])
    .where(sql<boolean>`(assistant_id = ${id} or thread_id = any(${ids}::uuid[]))`)
    .limit(1)
    .executeTakeFirst();
  if (running !== undefined)
    throw new DomainError('conflict', 'Runs of this assistant have not ended: cancel them first');
  if (ids.length > 0)
    await db.deleteFrom('agent_threads').where('thread_id', '=', sql<string>`any(${ids}::uuid[])`).execute();
  await db.deleteFrom('agent_assistants').where('assistant_id', '=', id).execute();
}

async function lockThreads(db: Database, id: string, filter: Filter | undefined): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('agent_threads')
    .select('thread_id')
    .where(sql<boolean>`metadata @> ${JSON.stringify({ assistant_id: id })}::jsonb`)
    .where(whereVisible(filter))
    .orderBy('thread_id')
    .forUpdate()
    .execute();
  return rows.map(({ thread_id }) => thread_id);
}
