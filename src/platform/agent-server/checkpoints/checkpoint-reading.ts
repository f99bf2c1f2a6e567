// Reads checkpoints with the values of their channels and the writes of tasks. Each lookup is one in the primary key of its table,
// so that what a thread has of history costs nothing when its last checkpoint is read.
import type { StoredCheckpoint } from '../../../agent-worker/protocol/calls.ts';
import { DomainError } from '../../../base/domain-error.ts';
import { isStorable } from '../../../base/json/storable-text.ts';
import type { Database } from '../../store/database.ts';
import { type CompiledQuery, sql } from '../../store/sql.ts';
import type { StatementValue } from '../../store/pool/run-message.ts';
import { defineStatement } from '../../store/statement.ts';
import { toSearchable } from '../json-for-search.ts';
import type { CheckpointParams } from './checkpoint-params.ts';
import { toTyped } from './value-pack.ts';

/** Null where there is none. */
export async function readCheckpoint(
  db: Database,
  params: CheckpointParams['checkpoint.get'],
): Promise<StoredCheckpoint | null> {
  const { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id } = params;
  const rows =
    id === undefined ? await readLatest(db, { threadId, ns }) : await readOne(db, { threadId, ns, id });
  return toCheckpoints(threadId, rows)[0] ?? null;
}

/** Of the namespace of a checkpoint, which may be it. */
export async function findLatestId(db: Database, known: StoredCheckpoint): Promise<string> {
  const { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id } = known;
  const place = db.selectFrom('agent_checkpoints').select('checkpoint_id').where('thread_id', '=', threadId);
  const latest = place.where('checkpoint_ns', '=', ns).orderBy('checkpoint_id', 'desc').limit(1);
  return (await latest.executeTakeFirst())?.checkpoint_id ?? id;
}

export type NamedCheckpoint = {
  readonly threadId: string;
  readonly id: string;
  /** Absent, or anything that is no text: that of the graph itself. */
  readonly namespace: unknown;
};

/** Throws `not_found`: from a checkpoint that is not there a graph would go on with nothing, and the thread would have lost its state. */
export async function requireCheckpoint(
  db: Pick<Database, 'selectFrom'>,
  { threadId, id, namespace }: NamedCheckpoint,
): Promise<void> {
  const ns = typeof namespace === 'string' ? namespace : '';
  const place = db.selectFrom('agent_checkpoints').select('checkpoint_id').where('thread_id', '=', threadId);
  const found = place.where('checkpoint_ns', '=', ns).where('checkpoint_id', '=', id);
  if (!isStorable(id + ns) || (await found.executeTakeFirst()) === undefined)
    throw new DomainError('not_found', 'Checkpoint not found: the thread has none with this id');
}

/** Of a checkpoint that goes with the start of a run: a larger one is asked for, and not read before, while its thread is locked. */
export const MAX_STARTED_BYTES: number = 3 * 1024 * 1024;

/** The last one of the graph itself; undefined where it is large. */
export async function readLatestToStart(
  db: Database,
  threadId: string,
): Promise<StoredCheckpoint | null | undefined> {
  const rows = await readSmall(db, { threadId });
  if (rows.some(({ part }) => part === 'large')) return undefined;
  return toCheckpoints(threadId, rows)[0] ?? null;
}

/** At most so many in one result, and about so many bytes, which fit into a frame: a worker asks again before the last one. */
const MAX_LISTED = 100;
const MAX_LISTED_BYTES = 16 * 1024 * 1024;

/** Newest first; fewer than `limit` where they are large, and none where there is no more. */
export async function listCheckpoints(
  db: Database,
  params: CheckpointParams['checkpoint.list'],
  maxBytes: number = MAX_LISTED_BYTES,
): Promise<readonly StoredCheckpoint[]> {
  const places: { readonly ns: string; readonly id: string }[] = [];
  let bytes = 0;
  for (const place of await findPlaces(db, params)) {
    bytes += Number(place.bytes);
    if (places.length > 0 && bytes > maxBytes) break;
    places.push({ ns: place.checkpoint_ns, id: place.checkpoint_id });
  }
  if (places.length === 0) return [];
  const threadId = params.thread_id;
  return toCheckpoints(threadId, await readPlaces(db, { threadId, places: JSON.stringify(places) }));
}

type Place = { readonly checkpoint_ns: string; readonly checkpoint_id: string; readonly bytes: string };

async function findPlaces(db: Database, params: CheckpointParams['checkpoint.list']): Promise<Place[]> {
  const { checkpoint_ns: ns, checkpoint_id: id, before, limit = MAX_LISTED, filter = {} } = params;
  return await db
    .selectFrom('agent_checkpoints as found')
    .select(['checkpoint_ns', 'checkpoint_id'])
    .select(
      sql<string>`octet_length(checkpoint) + octet_length(metadata)
        + (select coalesce(sum(octet_length(one.value)), 0) from ${valuesOf()} as one)
        + (select coalesce(sum(octet_length(one.value)), 0) from ${writesOf()} as one)`.as('bytes'),
    )
    .where('thread_id', '=', params.thread_id)
    .$if(ns !== undefined, (query) => query.where('checkpoint_ns', '=', ns ?? ''))
    .$if(id !== undefined, (query) => query.where('checkpoint_id', '=', id ?? ''))
    .$if(before !== undefined, (query) => query.where('checkpoint_id', '<', before ?? ''))
    .$if(Object.keys(filter).length > 0, (query) => {
      const text = toSearchable(JSON.stringify(filter));
      return query.where(sql<boolean>`searched_metadata @> ${text}::jsonb`);
    })
    .orderBy('checkpoint_id', 'desc')
    .orderBy('checkpoint_ns')
    .limit(Math.min(limit, MAX_LISTED))
    .execute();
}

type Row = {
  /** `large`: that there is one, and nothing of it. */
  readonly part: 'checkpoint' | 'value' | 'write' | 'large';
  readonly ns: string;
  readonly id: string;
  /** Of a checkpoint its parent, of a value its channel, of a write its task. */
  readonly name: string | null;
  /** Of a checkpoint its versions, of a value its version, of a write its index. */
  readonly detail: string;
  /** Of a write; of a checkpoint the type of its metadata. */
  readonly channel: string | null;
  readonly type: string;
  readonly value: Buffer;
  /** Of a checkpoint. */
  readonly metadata: Buffer | null;
};

const readLatest = defineStatement(
  'read-latest-checkpoint',
  (db, { threadId, ns }: { readonly threadId: string; readonly ns: string }) =>
    contentsOf(db, latestOf(threadId, ns)),
);

const latestOf = (threadId: StatementValue, ns: StatementValue) => sql`
  select * from agent_checkpoints where thread_id = ${threadId} and checkpoint_ns = ${ns}
  order by checkpoint_id desc limit 1`;

/** The size of a value is known without its bytes, which are read only where they are few. */
const readSmall = defineStatement(
  'read-latest-checkpoint-to-start',
  (db, { threadId }: { readonly threadId: string }) => {
    const isSmall = sql`bytes <= ${sql.lit(MAX_STARTED_BYTES)}`;
    return sql<Row>`
      with found as materialized (${latestOf(threadId, '')}),
      stored as materialized (select one.* from found, lateral ${valuesOf()} as one),
      written as materialized (select one.* from found, lateral ${writesOf()} as one),
      sized as materialized (
        select octet_length(checkpoint) + octet_length(metadata)
          + (select coalesce(sum(octet_length(value)), 0) from stored)
          + (select coalesce(sum(octet_length(value)), 0) from written) as bytes
        from found)
      select 'checkpoint' as part, checkpoint_ns as ns, checkpoint_id as id, parent_checkpoint_id as name,
        versions::text as detail, metadata_type as channel, type, checkpoint as value, metadata
        from found, sized where ${isSmall}
      union all
      select 'value', found.checkpoint_ns, found.checkpoint_id, stored.channel, stored.version, null, stored.type, stored.value, null
        from found, sized, stored where ${isSmall}
      union all
      select 'write', found.checkpoint_ns, found.checkpoint_id, written.task_id, written.idx::text, written.channel,
        written.type, written.value, null
        from found, sized, written where ${isSmall}
      union all
      select 'large', '', '', null, '', null, '', ''::bytea, null from sized where not (${isSmall})
    `.compile(db);
  },
);

const readOne = defineStatement(
  'read-checkpoint',
  (db, { threadId, ns, id }: { readonly threadId: string; readonly ns: string; readonly id: string }) =>
    contentsOf(
      db,
      sql`select * from agent_checkpoints
        where thread_id = ${threadId} and checkpoint_ns = ${ns} and checkpoint_id = ${id}`,
    ),
);

const readPlaces = defineStatement(
  'read-checkpoints',
  (db, { threadId, places }: { readonly threadId: string; readonly places: string }) =>
    contentsOf(
      db,
      sql`select one.* from json_to_recordset(${places}::json) as place (ns text, id text),
        lateral (select * from agent_checkpoints
          where thread_id = ${threadId} and checkpoint_ns = place.ns and checkpoint_id = place.id limit 1) as one`,
    ),
);

function contentsOf(db: Database, places: ReturnType<typeof sql>): CompiledQuery<Row> {
  return sql<Row>`
    with found as materialized (${places})
    select 'checkpoint' as part, checkpoint_ns as ns, checkpoint_id as id, parent_checkpoint_id as name,
      versions::text as detail, metadata_type as channel, type, checkpoint as value, metadata
      from found
    union all
    select 'value', checkpoint_ns, checkpoint_id, one.channel, one.version, null, one.type, one.value, null
      from found, lateral ${valuesOf()} as one
    union all
    select 'write', checkpoint_ns, checkpoint_id, one.task_id, one.idx::text, one.channel, one.type, one.value, null
      from found, lateral ${writesOf()} as one
  `.compile(db);
}

/** Of the row `found`. The limit has each version looked up by the key, whatever the tables were like when they were analyzed. */
const valuesOf = () => sql`(
  select stored.channel, stored.version, stored.type, stored.value
  from jsonb_each_text(found.versions) as used (channel, version),
    lateral (select * from agent_checkpoint_values as known
      where known.thread_id = found.thread_id and known.checkpoint_ns = found.checkpoint_ns
        and known.channel = used.channel and known.version = used.version limit 1) as stored)`;

/** Of several runs that wrote the same: of the graph itself the last one counts, of the others the first. */
const writesOf = () => sql`(
  select distinct on (task_id, idx) task_id, idx, written.channel, written.type, written.value
  from agent_checkpoint_writes as written
  where written.thread_id = found.thread_id and written.checkpoint_ns = found.checkpoint_ns
    and written.checkpoint_id = found.checkpoint_id
  order by task_id, idx, case when idx < 0 then -written.position else written.position end)`;

type Growing = StoredCheckpoint & {
  readonly values: StoredCheckpoint['values'][number][];
  readonly writes: StoredCheckpoint['writes'][number][];
};

/** In the order of the rows of checkpoints, which come first. */
function toCheckpoints(threadId: string, rows: readonly Row[]): readonly StoredCheckpoint[] {
  const found = new Map<string, Growing>();
  for (const { part, ns, id, name, detail, channel, type, value, metadata } of rows) {
    const key = JSON.stringify([ns, id]);
    if (part === 'checkpoint') {
      found.set(key, {
        ...{ thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id },
        ...(name === null ? {} : { parent_checkpoint_id: name }),
        checkpoint: toTyped(type, value),
        metadata: toTyped(channel ?? '', metadata ?? Buffer.alloc(0)),
        versions: JSON.parse(detail),
        values: [],
        writes: [],
      });
      continue;
    }
    const of = found.get(key);
    if (part === 'value')
      of?.values.push({ channel: name ?? '', version: detail, value: toTyped(type, value) });
    else
      of?.writes.push({
        ...{ task_id: name ?? '', idx: Number(detail), channel: channel ?? '' },
        value: toTyped(type, value),
      });
  }
  return [...found.values()];
}
