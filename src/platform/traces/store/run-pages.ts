// Whole runs of a project in pages, for exports. Payloads that are large are read in pieces: the driver holds what it reads several
// times, and one run may have more of them than a page.
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { type PagedPayload, type PagedRun, type RunPageColumn, RunTooLarge, toCursor } from '../contract.ts';
import type { RunPageRead } from '../trace-store.ts';
import { payloadColumn, payloadFields } from './run-columns.ts';
import { readPayload } from './run-payloads.ts';
import { selectionOf } from './run-selection.ts';

type PayloadColumn = Extract<RunPageColumn, (typeof payloadFields)[number]>;
type PlainColumn = Exclude<RunPageColumn, PayloadColumn | 'feedback_stats'>;
type Row = { -readonly [K in keyof PagedRun]: PagedRun[K] } & { readonly has_large: boolean };

/** Of one payload that is read with the others. */
const SMALL_BYTES = 1024 * 1024;
const TIMES: readonly RunPageColumn[] = ['start_time', 'end_time', 'first_token_time'];
/** Read as JSON: the driver takes long for arrays. */
const LISTS: readonly RunPageColumn[] = ['parent_run_ids', 'tags'];

/** In the snapshot of the transaction. */
export async function readRunPage(trx: Database, read: RunPageRead): Promise<readonly PagedRun[]> {
  const payloads = payloadFields.filter((field): field is PayloadColumn =>
    read.columns.has(field as PayloadColumn),
  );
  const { rows } = await pageOf(read, payloads).execute(trx);
  for (const row of rows) {
    for (const field of payloads) row[field] = toPayload(row[field] as string | null);
    if (row.has_large) Object.assign(row, await readLarge(trx, read, row, payloads));
  }
  return rows;
}

/** The planner knows the bounds of the window, and leaves all other partitions out. Sizes are known without reading the payloads. */
function pageOf(read: RunPageRead, payloads: readonly PayloadColumn[]) {
  const plain = plainColumns(read.columns);
  const stored = payloads.map((field) => sql.ref(payloadColumn(field)));
  const sizes = stored.map((payload) => sql`coalesce(octet_length(${payload}), 0)`);
  const own = sizes.length === 0 ? sql`0` : sql`(${sql.join(sizes, sql` + `)})`;
  const isLarge = sql`greatest(0, ${sql.join([sql`0`, ...sizes])}) > ${sql.lit(SMALL_BYTES)}`;
  const small = payloads.map((field) => {
    const payload = sql.ref(payloadColumn(field));
    return sql`case when octet_length(${payload}) <= ${sql.lit(SMALL_BYTES)} then ${toText(payload)} end as ${sql.ref(field)}`;
  });
  return sql<Row>`
    select ${sql.join([...plain.map(toShown), ...small, sql`${isLarge} as has_large`])}
    from (
      select page.*, coalesce(sum(${own})
        over (order by start_time, id rows between unbounded preceding and 1 preceding), 0) as bytes_before
      from (
        select ${sql.join([...plain.map((name) => sql.ref(`r.${name}`)), ...stored])}
        from trace_runs r
        where ${selectionOf(selectedBy(read), read.window)} ${behind(read)}
        order by r.start_time, r.id limit ${sql.lit(read.maxRows)}
      ) page
    ) page
    where bytes_before < ${sql.lit(read.maxBytes)} order by start_time, id`;
}

/** RFC 8878 §3.1.1, in hexadecimal digits as the database writes them. No JSON begins with a backslash. */
const FRAME = '\\x28b52ffd';

/** Of bytes the driver would hold twice as many digits: only frames are read as such. */
function toText(payload: ReturnType<typeof sql.ref>) {
  return sql`case when substr(${payload}, 1, 4) = ${sql.lit(FRAME)}::bytea
    then ${payload}::text else convert_from(${payload}, 'UTF8') end`;
}

function toPayload(text: string | null): PagedPayload {
  return text !== null && text.startsWith(FRAME) ? Buffer.from(text.slice(2), 'hex') : text;
}

function plainColumns(columns: RunPageRead['columns']): readonly PlainColumn[] {
  const isPlain = (name: RunPageColumn): name is PlainColumn =>
    name !== 'feedback_stats' && !(payloadFields as readonly string[]).includes(name);
  return [...new Set<RunPageColumn>(['id', 'start_time', ...columns])].filter(isPlain);
}

function toShown(name: PlainColumn) {
  if (LISTS.includes(name)) return sql`to_json(${sql.ref(name)}) as ${sql.ref(name)}`;
  if (!TIMES.includes(name)) return sql.ref(name);
  return sql`(extract(epoch from ${sql.ref(name)}) * 1000000)::bigint as ${sql.ref(name)}`;
}

function selectedBy({ workspaceId, projectId, window, filter }: RunPageRead) {
  return { workspaceId, projects: [projectId], window, ...(filter === undefined ? {} : { filter }) };
}

/** The bound of the start alone leaves partitions out. */
function behind({ after }: RunPageRead) {
  if (after === undefined) return sql``;
  const start = sql`${after.start_time}::timestamptz`;
  return sql`and r.start_time >= ${start} and (r.start_time, r.id) > (${start}, ${after.id}::uuid)`;
}

/** Those that are null in the row are absent, or large. Throws RunTooLarge before more is held than the limit of one run. */
async function readLarge(
  trx: Database,
  { workspaceId, projectId, maxRunBytes = Number.POSITIVE_INFINITY }: RunPageRead,
  row: Row,
  payloads: readonly PayloadColumn[],
): Promise<Partial<PagedRun>> {
  const key = { session_id: projectId, ...toCursor(row) };
  const large: Partial<Record<PayloadColumn, Buffer>> = {};
  let bytes = 0;
  for (const field of payloads) {
    if (row[field] !== null) continue;
    const pieces: Buffer[] = [];
    for await (const piece of readPayload(trx, { workspaceId, run: key, field })) {
      bytes += piece.length;
      if (bytes > maxRunBytes) throw new RunTooLarge(row.id, field);
      pieces.push(piece);
    }
    if (pieces.length > 0) large[field] = Buffer.concat(pieces);
  }
  return large;
}
