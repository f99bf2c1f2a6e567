// Gives back the space of rows that were deleted. The server reuses it by itself, but the files of a table stay as large as they were
// until the table is written anew.
import type { Client } from '../../store/database.ts';

/** How many rows of a relation had been deleted when its table was last written anew, by the oids of relations. */
export type ReclaimedRows = Map<number, number>;

/** Of all rows: for fewer, writing a table anew is not worth what it costs. */
const MIN_SHARE = 0.1;
/** In which it may not be used meanwhile. */
const TABLE_MS = 300_000;

type TableRow = {
  readonly schema: string;
  readonly name: string;
  readonly oid: number;
  readonly toast: number;
  readonly deleted: string;
  readonly toast_deleted: string;
  readonly live: string;
};

/**
 * `client`: of the role of the deployment. Smaller tables come first, because each needs the space of what is left of it. One that is in
 * use for long holds up no other: rejects with the first failure when all were tried.
 */
export async function reclaimSpace(
  client: Client,
  minBytes: number,
  reclaimed: ReclaimedRows,
): Promise<void> {
  await client.query(`set statement_timeout = ${TABLE_MS}`);
  const failures: unknown[] = [];
  for (const row of await readTables(client, minBytes)) {
    const counts = [
      [row.oid, Number(row.deleted)],
      [row.toast, Number(row.toast_deleted)],
    ] as const;
    const deleted = counts.reduce((sum, [oid, count]) => sum + since(count, reclaimed.get(oid)), 0);
    if (deleted <= MIN_SHARE * (Number(row.live) + deleted)) continue;
    const table = [row.schema, row.name].map((part) => client.escapeIdentifier(part)).join('.');
    try {
      await client.query(`vacuum (full) ${table}`);
      for (const [oid, count] of counts) reclaimed.set(oid, count);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Statistics begin anew after a crash of the server. */
function since(count: number, before = 0): number {
  return count >= before ? count - before : count;
}

/** Large values are rows of another relation. */
async function readTables(client: Client, minBytes: number): Promise<readonly TableRow[]> {
  const { rows } = await client.query<TableRow>(
    `select n.nspname as schema, c.relname as name, c.oid, c.reltoastrelid as toast,
      coalesce(s.n_tup_del, 0) as deleted, coalesce(t.n_tup_del, 0) as toast_deleted,
      coalesce(s.n_live_tup, 0) + coalesce(t.n_live_tup, 0) as live
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
      left join pg_stat_all_tables s on s.relid = c.oid left join pg_stat_all_tables t on t.relid = c.reltoastrelid
    where c.relkind = 'r' and c.relpersistence <> 't' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      and pg_total_relation_size(c.oid) >= $1
    order by pg_total_relation_size(c.oid)`,
    [minBytes],
  );
  return rows;
}
