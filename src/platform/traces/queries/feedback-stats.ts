// What feedback says of each of several runs: by key, the number, the mean of the scores, and how often each text was given.
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import '../store/trace-rows.ts';
import type { FeedbackStats } from './run-fields.ts';

/** Different texts of one page that are counted. */
const MAX_VALUES = 10_000;

type Stats = {
  [key: string]: { readonly n: number; readonly avg: number | null; readonly values: Record<string, number> };
};

/** A run without feedback is absent. */
export async function readFeedbackStats(
  db: Reader,
  workspaceId: string,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, FeedbackStats>> {
  if (runIds.length === 0) return new Map();
  const isOfRun = sql<boolean>`workspace_id = ${workspaceId} and run_id = any(${runIds}::uuid[])`;
  const keys = await db
    .selectFrom('trace_feedback')
    .where(isOfRun)
    .groupBy(['run_id', 'key'])
    .select(['run_id', 'key', sql<string>`count(*)`.as('n'), sql<number | null>`avg(score)`.as('avg')])
    .execute();
  if (keys.length === 0) return new Map();
  const found = new Map<string, Stats>();
  for (const { run_id, key, n, avg } of keys) {
    const stats = found.get(run_id ?? '') ?? {};
    Object.defineProperty(stats, key, { value: { n: Number(n), avg, values: {} }, enumerable: true });
    found.set(run_id ?? '', stats);
  }
  const text = sql<string>`value #>> '{}'`;
  const values = await db
    .selectFrom('trace_feedback')
    .where(isOfRun)
    .where(sql<boolean>`jsonb_typeof(value) = 'string'`)
    .groupBy(['run_id', 'key', text])
    .select(['run_id', 'key', text.as('text'), sql<string>`count(*)`.as('n')])
    .limit(MAX_VALUES)
    .execute();
  for (const { run_id, key, text: value, n } of values) {
    const counts = found.get(run_id ?? '')?.[key]?.values;
    if (counts !== undefined)
      Object.defineProperty(counts, value, { value: Number(n), enumerable: true, configurable: true });
  }
  return found;
}
