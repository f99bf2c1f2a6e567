// What a database refuses while it is above its limit: rows that are inserted or copied into its tables. Rows can be read, changed and
// deleted, and what has begun can end. All of it belongs to the role of the deployment, which owns its tables and could remove it: against
// code that does, the bridge holds, which closes the database at a higher limit.
import type { Client } from '../../store/database.ts';
import { SIZE_LIMIT } from '../../store/database-error.ts';

/** Of the function alone. */
const SCHEMA = 'sallyport_limits';
const REFUSE = `${SCHEMA}.refuse_insert()`;

/** In which an agent server notes that runs have ended: refused, they would never end. */
const NEVER_REFUSED: readonly string[] = ['agent_run_events', 'agent_run_results'];
const MAX_TABLES = 1_000;
/** For all tables of a database, whose code may hold locks. */
const MAX_MS = 20_000;
const INVALID_OBJECT = '2BP01';

type Table = { readonly schema: string; readonly name: string };

export type InsertRefusal = {
  readonly message: string;
  readonly hint: string;
  /** Smaller tables take rows, so that an agent server can start. */
  readonly minBytes: number;
};

/** `client`: of the role of the deployment. May be repeated: tables that were made meanwhile follow. */
export async function refuseInserts(client: Client, refusal: InsertRefusal): Promise<void> {
  const { message, hint, minBytes } = refusal;
  await client.query(`create schema if not exists ${SCHEMA}`);
  const quoted = [SIZE_LIMIT, message, hint].map((text) => client.escapeLiteral(text));
  const [constraint, text, advice] = quoted;
  await replaceFunction(
    client,
    `raise exception using errcode = '53100', constraint = ${constraint}, message = ${text}, hint = ${advice};`,
  );
  await forEach(client, await findTables(client, minBytes), (table) =>
    client.query(
      `create or replace trigger ${SIZE_LIMIT} before insert on ${table} for each statement execute function ${REFUSE}`,
    ),
  );
}

/** Nothing is refused as soon as the function does nothing: its triggers are removed where no lock is in the way. */
export async function allowInserts(client: Client): Promise<void> {
  if (!(await isRefusingInserts(client))) return;
  await replaceFunction(client, 'return null;');
  const { rows } = await client.query<Table>(
    `select n.nspname as schema, c.relname as name from pg_trigger t
      join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace where t.tgname = $1`,
    [SIZE_LIMIT],
  );
  await forEach(client, rows, (table) => client.query(`drop trigger if exists ${SIZE_LIMIT} on ${table}`));
  await client.query(`drop function if exists ${REFUSE}; drop schema if exists ${SCHEMA}`).catch(unlessUsed);
}

export async function isRefusingInserts(client: Client): Promise<boolean> {
  const text = 'select from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = $1';
  return (await client.query(text, [SCHEMA])).rowCount !== 0;
}

async function replaceFunction(client: Client, body: string): Promise<void> {
  const text = `begin ${body} end`;
  await client.query(
    `create or replace function ${REFUSE} returns trigger language plpgsql set search_path = pg_catalog as ${client.escapeLiteral(text)}`,
  );
}

/** Rows for a partitioned table pass through its own trigger alone. */
async function findTables(client: Client, minBytes: number): Promise<readonly Table[]> {
  const { rows } = await client.query<Table>(
    `select schema, name from (
      select n.nspname as schema, c.relname as name, case c.relkind when 'p'
          then (select coalesce(sum(pg_total_relation_size(relid)), 0) from pg_partition_tree(c.oid))
          else pg_total_relation_size(c.oid) end as bytes
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p') and c.relpersistence <> 't' and n.nspname !~ '^pg_'
        and n.nspname <> 'information_schema' and c.relname <> all ($2)
        and not exists (select from pg_trigger t where t.tgrelid = c.oid and t.tgname = $3 and t.tgenabled <> 'D')
    ) tables where bytes >= $1 order by bytes desc limit ${MAX_TABLES}`,
    [minBytes, NEVER_REFUSED, SIZE_LIMIT],
  );
  return rows;
}

/** One that is locked holds up no other. Rejects with the first failure, when all were tried. */
async function forEach(
  client: Client,
  tables: readonly Table[],
  change: (table: string) => Promise<unknown>,
): Promise<void> {
  const untilMs = performance.now() + MAX_MS;
  const failures: unknown[] = [];
  for (const { schema, name } of tables) {
    if (performance.now() > untilMs) failures.push(new Error('the tables of a deployment take too long'));
    if (performance.now() > untilMs) break;
    const table = [schema, name].map((part) => client.escapeIdentifier(part)).join('.');
    await change(table).catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}

/** The deployment has something in the schema. */
function unlessUsed(error: { readonly code?: unknown }): void {
  if (error.code !== INVALID_OBJECT) throw error;
}
