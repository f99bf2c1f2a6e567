// psql's COPY of the rows that ingestion has written, into a table with the same columns, indexes and generated columns.
import { spawnSync } from 'node:child_process';
import { type Connection, connectOnce } from '../../src/platform/store/database.ts';

const TARGET = 'bench_copy';

export type Copying = {
  readonly rows: number;
  /** Returns the seconds of COPY. */
  copy(): Promise<number>;
};

export async function prepareCopy(owner: Connection, file: string): Promise<Copying> {
  const columns = await connectOnce(owner, async (client) => {
    await client.query(`drop table if exists ${TARGET}`);
    await client.query(`create table ${TARGET} (like trace_runs including all)`);
    const { rows } = await client.query<{ readonly columns: string }>(
      `select string_agg(quote_ident(column_name), ', ' order by ordinal_position) as columns from information_schema.columns
       where table_schema = 'public' and table_name = 'trace_runs' and is_generated = 'NEVER'`,
    );
    return rows[0]?.columns ?? '';
  });
  run(owner, `\\copy (select ${columns} from trace_runs) to '${file}'`);
  const rows = await connectOnce(owner, (client) =>
    client.query<{ readonly n: string }>('select count(*) as n from trace_runs'),
  );
  return {
    rows: Number(rows.rows[0]?.n),
    async copy() {
      await connectOnce(owner, (client) => client.query(`truncate ${TARGET}`));
      const startMs = performance.now();
      run(owner, `\\copy ${TARGET} (${columns}) from '${file}'`);
      return (performance.now() - startMs) / 1000;
    },
  };
}

function run({ host, user, password, database }: Connection, command: string): void {
  const { status, stderr, error } = spawnSync('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-c', command], {
    encoding: 'utf8',
    env: {
      PATH: process.env['PATH'],
      PGHOST: host,
      PGUSER: user,
      PGPASSWORD: String(password),
      PGDATABASE: database,
    },
  });
  if (status !== 0) throw new Error(`psql failed: ${error?.message ?? stderr}`);
}
