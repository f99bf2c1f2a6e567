// Which assistants and versions a search finds: conditions in SQL, with what the caller may see among them.
import { z } from '../../../base/schema.ts';
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { type Filter, whereVisible } from '../access/filters.ts';
import { requireSmallPage } from '../page-size.ts';
import { json, noAssistant, pageShape } from './assistant-route.ts';
import { ASSISTANT_FIELDS, type AssistantField, assistantText, versionText } from './assistant-text.ts';

const conditions = {
  graph_id: z.string().nullish(),
  /** A part of it, in any case. */
  name: z.string().nullish(),
  metadata: json.nullish(),
};

export const assistantCount = z.object(conditions);
export const assistantSearch = z.object({
  ...conditions,
  ...pageShape,
  sort_by: z.enum(['assistant_id', 'graph_id', 'name', 'created_at', 'updated_at']).nullish(),
  sort_order: z.enum(['asc', 'desc']).nullish(),
  select: z.array(z.enum(ASSISTANT_FIELDS)).nullish(),
});
export const versionSearch = z.object({ metadata: json.nullish(), ...pageShape });

type Conditions = z.output<typeof assistantCount>;

/** As JSON text. Throws DomainError `not_found`. */
export async function readAssistant(db: Reader, id: string, filter: Filter | undefined): Promise<string> {
  const found = db.selectFrom('agent_assistants').select(assistantText()).where('assistant_id', '=', id);
  const row = await found.where(whereVisible(filter)).executeTakeFirst();
  if (row === undefined) throw noAssistant();
  return row.text;
}

export async function countAssistants(
  db: Reader,
  wanted: Conditions,
  filter: Filter | undefined,
): Promise<number> {
  const query = findAssistants(db, wanted, filter).select(sql<string>`count(*)`.as('assistants'));
  return Number((await query.executeTakeFirstOrThrow()).assistants);
}

const LARGE: readonly AssistantField[] = ['config', 'context', 'metadata', 'description'];

/** The JSON text of each, and whether there are more. Throws DomainError `unusable` for too large a page. */
export async function searchAssistants(
  db: Reader,
  wanted: z.output<typeof assistantSearch>,
  filter: Filter | undefined,
): Promise<{ readonly texts: readonly string[]; readonly hasMore: boolean }> {
  const { limit, offset, sort_by, sort_order, select } = wanted;
  const order = sort_order ?? 'desc';
  const fields = ASSISTANT_FIELDS.filter((field) => (select ?? ASSISTANT_FIELDS).includes(field));
  const found = await findAssistants(db, wanted, filter)
    .select('assistant_id as id')
    .orderBy(sort_by ?? 'created_at', order)
    .orderBy('assistant_id', order)
    .limit(limit + 1)
    .offset(offset)
    .execute();
  const ids = found.slice(0, limit).map(({ id }) => id);
  const where = sql<boolean>`assistant_id = any(${ids}::uuid[])`;
  const columns = LARGE.filter((field) => fields.includes(field));
  await requireSmallPage(db, { table: 'agent_assistants', where, columns });
  const rows = await db
    .selectFrom('agent_assistants')
    .select(['assistant_id as id', assistantText(fields)])
    .where(where)
    .execute();
  const byId = new Map(rows.map(({ id, text }) => [id, text]));
  return { texts: ids.flatMap((id) => byId.get(id) ?? []), hasMore: found.length > limit };
}

function findAssistants(db: Reader, { graph_id, name, metadata }: Conditions, filter: Filter | undefined) {
  let query = db.selectFrom('agent_assistants').where(whereVisible(filter));
  if (typeof graph_id === 'string') query = query.where('graph_id', '=', graph_id);
  if (typeof name === 'string')
    query = query.where(sql<boolean>`position(lower(${name}::text) in lower(name)) > 0`);
  return metadata === undefined || metadata === null ? query : query.where(containing(metadata));
}

/** The newest first: of those versions whose own metadata the caller may see. Throws DomainError `not_found`, and `unusable` for too large a page. */
export async function listVersions(
  db: Reader,
  id: string,
  { metadata, limit, offset }: z.output<typeof versionSearch>,
  filter: Filter | undefined,
): Promise<readonly string[]> {
  const assistant = db.selectFrom('agent_assistants').select('assistant_id').where('assistant_id', '=', id);
  if ((await assistant.where(whereVisible(filter)).executeTakeFirst()) === undefined) throw noAssistant();
  let query = db
    .selectFrom('agent_assistant_versions')
    .select('version')
    .where('assistant_id', '=', id)
    .where(whereVisible(filter));
  if (metadata !== undefined && metadata !== null) query = query.where(containing(metadata));
  const found = await query.orderBy('version', 'desc').limit(limit).offset(offset).execute();
  const versions = found.map(({ version }) => version);
  const where = sql<boolean>`assistant_id = ${id} and version = any(${versions}::integer[])`;
  await requireSmallPage(db, { table: 'agent_assistant_versions', where, columns: LARGE });
  const shown = db.selectFrom('agent_assistant_versions').select(versionText()).where(where);
  return (await shown.orderBy('version', 'desc').execute()).map(({ text }) => text);
}

function containing(metadata: Readonly<Record<string, unknown>>) {
  return sql<boolean>`metadata @> ${JSON.stringify(metadata)}::jsonb`;
}
