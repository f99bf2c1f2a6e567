// The content of the database as one hash per table. The tables are listed from the database, so that a new one cannot be
// forgotten. The audit log has tests of its own; last-use times are written asynchronously and left out.
import type { Database } from '../../../src/platform/store/database.ts';
import { sql } from 'kysely';

export type Digest = {
  /** Of every row; with `but`, without the rows of that workspace. */
  take(but?: string): Promise<Readonly<Record<string, string>>>;
};

type Table = { readonly name: string; readonly hasWorkspace: boolean };

export async function createDigest(db: Database): Promise<Digest> {
  const { rows: tables } = await sql<Table>`
    select t.table_name as name, exists (
      select from information_schema.columns c
      where c.table_schema = 'public' and c.table_name = t.table_name and c.column_name = 'workspace_id'
    ) as "hasWorkspace"
    from information_schema.tables t
    where t.table_schema = 'public' and t.table_type = 'BASE TABLE'
      and t.table_name not like 'audit\\_%' and t.table_name <> 'schema_migrations'
    order by 1`.execute(db);
  if (tables.length < 5) throw new Error('expected at least five tables');
  // A function: the server plans its query once for each connection.
  const parts = tables.map(digestOf);
  await sql`
    create or replace function test_digest(but uuid) returns table (name text, digest text) language plpgsql as ${sql.lit(
      `begin return query select * from (${parts.join(' union all ')}) as digests order by 1; end`,
    )}`.execute(db);
  return {
    async take(but) {
      // In parallel, the parts of a union come in any order.
      const { rows } = await sql<{
        name: string;
        digest: string;
      }>`select * from test_digest(${but ?? null}) order by name`.execute(db);
      return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
    },
  };
}

function digestOf({ name, hasWorkspace }: Table): string {
  const others = hasWorkspace ? 'where but is null or workspace_id is distinct from but' : '';
  return `
    select '${name}'::text, count(*) || ':' || coalesce(md5(string_agg(row, '|' order by row)), '')
    from (select (to_jsonb(t) - 'last_used_at')::text as row from ${name} t ${others}) as rows`;
}
