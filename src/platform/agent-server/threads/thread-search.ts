// Which threads a search finds: conditions in SQL, with what the caller may see among them. Temporary threads are in no list.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { finishInSlices, type Steps } from '../../../base/steps.ts';
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { type Filter, whereVisible } from '../access/filters.ts';
import { toSearchable } from '../json-for-search.ts';
import { countBytes, requireSmallPage } from '../page-size.ts';
import { type Extract, EXTRACT_ROOTS, extractInSteps, parseExtract } from './thread-extract.ts';
import { json, threadId } from './thread-route.ts';
import { THREAD_STATUSES } from './thread-rows.ts';
import {
  THREAD_FIELDS,
  type ThreadField,
  type ThreadRow,
  threadColumns,
  toThreadText,
} from './thread-text.ts';

const MAX_IDS = 1_000;
const MAX_EXTRACTS = 10;

const conditions = {
  metadata: json.nullish(),
  values: json.nullish(),
  status: z.enum(THREAD_STATUSES).nullish(),
  ids: z.array(threadId).max(MAX_IDS).nullish(),
};

export const pageShape = {
  limit: z.int().min(1).max(1_000).default(10),
  offset: z.int().min(0).max(1_000_000_000).default(0),
};

export const threadCount = z.object(conditions);

export const threadSearch = z.object({
  ...conditions,
  ...pageShape,
  sort_by: z
    .enum(['thread_id', 'status', 'created_at', 'updated_at', 'state_updated_at'])
    .nullish()
    .transform((field) => field ?? 'created_at'),
  sort_order: z
    .enum(['asc', 'desc'])
    .nullish()
    .transform((order) => order ?? 'desc'),
  // Clients know `context`, which threads of this server do not have.
  select: z.array(z.enum([...THREAD_FIELDS, 'context'])).nullish(),
  extract: z
    .record(z.string().min(1), z.string())
    .nullish()
    .transform((given, context) => {
      const parsed = Object.entries(given ?? {}).map(([alias, path]) => parseExtract(alias, path));
      if (parsed.length > MAX_EXTRACTS || parsed.includes(undefined))
        context.addIssue({ code: 'custom', message: EXTRACT });
      return parsed.filter((one) => one !== undefined);
    }),
});

const EXTRACT = `Give at most ${MAX_EXTRACTS} names of paths that begin with values, metadata, config or interrupts: values.messages[-1]`;

type Conditions = z.output<typeof threadCount>;
export type ThreadSearch = z.output<typeof threadSearch>;

export async function countThreads(
  db: Reader,
  wanted: Conditions,
  filter: Filter | undefined,
): Promise<number> {
  const query = findThreads(db, wanted, filter).select(sql<string>`count(*)`.as('threads'));
  return Number((await query.executeTakeFirstOrThrow()).threads);
}

/** Of what is extracted from, and of what is extracted: it is parsed in this process, which serves others too. */
const MAX_EXTRACT_BYTES = 8 * 1024 * 1024;

/** The JSON text of each, and whether there are more. Throws DomainError `unusable` for too large a page. */
export async function searchThreads(
  db: Reader,
  wanted: ThreadSearch,
  filter: Filter | undefined,
): Promise<{ readonly texts: readonly string[]; readonly hasMore: boolean }> {
  const { limit, offset, sort_by, sort_order, select, extract } = wanted;
  const fields = THREAD_FIELDS.filter((field) => (select ?? THREAD_FIELDS).includes(field));
  const roots = EXTRACT_ROOTS.filter((name) => extract.some(({ root }) => root === name));
  const found = await findThreads(db, wanted, filter)
    .select('thread_id as id')
    .orderBy(sort_by, sort_order)
    .orderBy('thread_id', sort_order)
    .limit(limit + 1)
    .offset(offset)
    .execute();
  const ids = found.slice(0, limit).map(({ id }) => id);
  const where = sql<boolean>`thread_id = any(${ids}::uuid[])`;
  const sized = { table: 'agent_threads', where } as const;
  await requireSmallPage(db, { ...sized, columns: fields.filter((field) => LARGE.has(field)) });
  if ((await countBytes(db, { ...sized, columns: roots })) > MAX_EXTRACT_BYTES) throw tooMuchToExtract();
  const columns = THREAD_FIELDS.filter(
    (field) => fields.includes(field) || roots.some((root) => root === field),
  );
  const rows = await db
    .selectFrom('agent_threads')
    .select('thread_id as id')
    .select(threadColumns(columns))
    .where(where)
    .execute();
  const byId = new Map(rows.map(({ id, ...row }) => [id, row]));
  const page = ids.flatMap((id) => byId.get(id) ?? []);
  const texts =
    extract.length === 0
      ? page.map((row) => toThreadText(row, fields))
      : await finishInSlices(extractFrom(page, fields, extract));
  return { texts, hasMore: found.length > limit };
}

const LARGE: ReadonlySet<ThreadField> = new Set(['metadata', 'config', 'values', 'interrupts', 'error']);

function* extractFrom(
  page: readonly Partial<ThreadRow>[],
  fields: readonly ThreadField[],
  extracts: readonly Extract[],
): Steps<readonly string[]> {
  const texts: string[] = [];
  let length = 0;
  for (const row of page) {
    const extracted = yield* extractInSteps(extracts, row);
    length += extracted.length;
    if (length > MAX_EXTRACT_BYTES) throw tooMuchToExtract();
    texts.push(toThreadText(row, fields, extracted));
  }
  return texts;
}

function tooMuchToExtract(): DomainError {
  return new DomainError(
    'unusable',
    `extract reads or gives more than ${MAX_EXTRACT_BYTES} bytes of these threads: lower limit`,
  );
}

function findThreads(db: Reader, wanted: Conditions, filter: Filter | undefined) {
  const { metadata, values, status, ids } = wanted;
  let query = db
    .selectFrom('agent_threads')
    .where(sql<boolean>`not is_temporary`)
    .where(whereVisible(filter));
  if (metadata !== undefined && metadata !== null && Object.keys(metadata).length > 0)
    query = query.where(sql<boolean>`metadata @> ${toSearchable(JSON.stringify(metadata))}::jsonb`);
  if (values !== undefined && values !== null && Object.keys(values).length > 0)
    query = query.where(sql<boolean>`searched_values @> ${toSearchable(JSON.stringify(values))}::jsonb`);
  if (status !== undefined && status !== null) query = query.where('status', '=', status);
  // An empty list names no thread.
  if (ids !== undefined && ids !== null)
    query = query.where('thread_id', '=', sql<string>`any(${ids}::uuid[])`);
  return query;
}
