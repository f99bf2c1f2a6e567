// What the feedback about each of many runs, or projects, comes to: for each key how many there are, their average score, and how
// often each text is their value.
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { startDeadline, withinTime } from '../store/query-time.ts';
import '../store/trace-rows.ts';

export type FeedbackStats = Readonly<
  Record<
    string,
    { readonly n: number; readonly avg: number | null; readonly values: Readonly<Record<string, number>> }
  >
>;

/** Of one response: whoever sends feedback decides how many keys and values there are. */
const MAX_ROWS = 10_000;
/** Longer texts are no labels that somebody counts. */
const MAX_VALUE_CHARS = 250;

/** By the id of a run. Runs without feedback are left out. */
export async function readFeedbackStats(
  db: Reader,
  workspaceId: string,
  runIds: readonly string[],
  deadlineMs: number = startDeadline(),
): Promise<ReadonlyMap<string, FeedbackStats>> {
  return (await readStats(db, { workspaceId, ids: runIds, by: 'run_id', deadlineMs, cure: FEWER_RUNS }))
    .stats;
}

/**
 * The same for any number of runs, each statement within the time of its pool; those that have more feedback than one response are read
 * in halves.
 */
export async function readAllFeedbackStats(
  db: Reader,
  workspaceId: string,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, FeedbackStats>> {
  const asked = { workspaceId, ids: runIds, by: 'run_id', deadlineMs: Infinity, cure: FEWER_RUNS } as const;
  const { stats, isCut } = await readStats(db, asked);
  if (!isCut || runIds.length === 1) return stats;
  const half = Math.ceil(runIds.length / 2);
  const first = await readAllFeedbackStats(db, workspaceId, runIds.slice(0, half));
  const second = await readAllFeedbackStats(db, workspaceId, runIds.slice(half));
  return new Map([...first, ...second]);
}

const FEWER_RUNS = 'leave feedback_stats out of select, or ask for fewer runs';

/** Whether any run of the workspace has some. */
export async function hasFeedback(db: Reader, workspaceId: string): Promise<boolean> {
  const found = db.selectFrom('trace_feedback').where('workspace_id', '=', workspaceId);
  const one = await found.where('run_id', 'is not', null).select('id').limit(1).executeTakeFirst();
  return one !== undefined;
}

/** By the id of a project. */
export async function readProjectFeedbackStats(
  db: Reader,
  workspaceId: string,
  projectIds: readonly string[],
): Promise<ReadonlyMap<string, FeedbackStats>> {
  const cure = 'leave include_stats out, or ask for fewer projects';
  const asked = {
    workspaceId,
    ids: projectIds,
    by: 'session_id',
    deadlineMs: startDeadline(),
    cure,
  } as const;
  return (await readStats(db, asked)).stats;
}

type Asked = {
  readonly workspaceId: string;
  readonly ids: readonly string[];
  readonly by: 'run_id' | 'session_id';
  readonly deadlineMs: number;
  readonly cure: string;
};

type Read = {
  readonly stats: ReadonlyMap<string, FeedbackStats>;
  /** There may be more than was read. */
  readonly isCut: boolean;
};

/** Throws `timeout` with the cure. */
async function readStats(db: Reader, asked: Asked): Promise<Read> {
  if (asked.ids.length === 0) return { stats: new Map(), isCut: false };
  const { deadlineMs, cure } = asked;
  const keys = await withinTime(db, deadlineMs, (reader) => readKeys(reader, asked), cure);
  const values = await withinTime(db, deadlineMs, (reader) => readValues(reader, asked), cure);
  const stats = new Map<string, Map<string, { n: number; avg: number | null; values: [string, number][] }>>();
  for (const { about, key, n, avg } of keys) {
    const ofOne = stats.get(about) ?? new Map();
    stats.set(about, ofOne.set(key, { n: Number(n), avg, values: [] }));
  }
  for (const { about, key, text, n } of values)
    stats
      .get(about)
      ?.get(key)
      ?.values.push([text, Number(n)]);
  return {
    stats: new Map([...stats].map(([id, ofOne]) => [id, toStats(ofOne)])),
    isCut: keys.length === MAX_ROWS || values.length === MAX_ROWS,
  };
}

function toStats(
  keys: ReadonlyMap<
    string,
    { readonly n: number; readonly avg: number | null; readonly values: [string, number][] }
  >,
): FeedbackStats {
  return Object.fromEntries(
    [...keys].map(([key, { values, ...rest }]) => [key, { ...rest, values: Object.fromEntries(values) }]),
  );
}

function selectFeedback(db: Reader, { workspaceId, ids, by }: Asked) {
  return db
    .selectFrom('trace_feedback')
    .where('workspace_id', '=', workspaceId)
    .where(sql<boolean>`${sql.ref(by)} = any(${ids}::uuid[])`)
    .select([sql<string>`${sql.ref(by)}`.as('about'), 'key', sql<string>`count(*)`.as('n')])
    .groupBy([by, 'key'])
    .orderBy(by)
    .orderBy('key')
    .limit(MAX_ROWS);
}

function readKeys(db: Reader, asked: Asked) {
  // As numeric: the squares of large scores, which avg keeps of double precision, overflow.
  const average = sql<number | null>`avg(score::numeric)::double precision`;
  return selectFeedback(db, asked).select(average.as('avg')).execute();
}

function readValues(db: Reader, asked: Asked) {
  const text = sql<string>`left(value #>> '{}', ${sql.lit(MAX_VALUE_CHARS)})`;
  return selectFeedback(db, asked)
    .where(sql<boolean>`jsonb_typeof(value) = 'string'`)
    .select(text.as('text'))
    .groupBy(text)
    .orderBy(text)
    .execute();
}
